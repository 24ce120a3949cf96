// Package setting is how a process reads its environment: all faults at once,
// secrets from files too, unknown names said; and how it sets up its log.
package setting
