package setting

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// CheckListen tells what is wrong with an address to listen on that stands in
// the setting name: host:port, port 0 for a free one, or one of the words.
func CheckListen(name, address string, words ...string) error {
	if slices.Contains(words, address) {
		return nil
	}
	if why := wrongListen(address); why != "" {
		return fmt.Errorf("cannot use %s=%q: %s", name, shorten(address), strings.Join(append([]string{why}, words...), "; or "))
	}
	return nil
}

func wrongListen(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "give host:port, for example 127.0.0.1:8848, :8848 or [::1]:8848"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return "the port must be a number, 0 to 65535; 0 takes a free one"
	}
	if strings.ContainsAny(host, " /") {
		return "the host must be a name or an address without blanks"
	}
	return ""
}
