// Package admin is every binary's own small HTTP: health, readiness, status
// and metrics, on loopback unless set otherwise.
package admin
