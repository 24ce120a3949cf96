package nacos

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sidebeat/sidebeat/registry"
)

// operation does what an endpoint is for and gives the outcome; how that is
// written is the business of the protocol version.
type operation func(ctx context.Context, s *Server, c *call) (any, error)

// naming is an operation below /v1/ns: names are taken apart and parameters
// checked before it runs.
func naming(op operation) handler {
	return func(s *Server, c *call) {
		if err := c.prepare(); err != nil {
			c.writeFault(asFault(err))
			return
		}
		c.writeV1(s.run(op, c))
	}
}

// operationTime bounds what one operation may take: below the 5 s after which
// the clients of Nacos give up, so that they hear the reason, and below the time
// that a server which stops leaves to requests in flight.
const operationTime = 4 * time.Second

func (s *Server) run(op operation, c *call) (any, error) {
	ctx, cancel := withinTime()
	defer cancel()
	return op(ctx, s, c)
}

// withinTime gives the context of one operation. It is no child of fasthttp's
// request: the context package would watch that in a goroutine, which may look
// at it when it already serves somebody else.
func withinTime() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), operationTime)
}

// open is an operation without names.
func open(op operation) handler {
	return func(s *Server, c *call) { c.writeV1(s.run(op, c)) }
}

// prepare does what the filters of 2.5.1 do before a controller runs.
func (c *call) prepare() error {
	if err := c.names(); err != nil {
		return err
	}
	return c.check()
}

// names takes the service name apart: group@@name wins over groupName.
func (c *call) names() error {
	c.service = registry.Service{
		Namespace: c.form.or(paramNamespace, registry.DefaultNamespace),
		Group:     c.form.or(paramGroup, registry.DefaultGroup),
		Name:      c.form.text(paramService),
	}
	group, name, grouped := strings.Cut(c.service.Name, groupSeparator)
	if !grouped {
		return nil
	}
	if name == "" {
		return nameFault(badFormat)
	}
	if group == "" {
		return nameFault("groupName can't be empty")
	}
	c.service.Group, c.service.Name = group, name
	return nil
}

const badFormat = "it should be format as 'groupName@@serviceName'"

func nameFault(why string) error {
	text := "Service name filter error,caused: Param 'serviceName' is illegal, " + why + ";"
	return boot(http.StatusBadRequest, text)
}

// need refuses the call unless all these parameters have a value.
func (c *call) need(names ...string) error {
	for _, name := range names {
		if c.form.text(name) != "" {
			continue
		}
		if name == paramService && c.form.has(name) {
			return badRequest("Param 'serviceName' is illegal, " + badFormat)
		}
		return required(name)
	}
	return nil
}

// key names the instance that the call is about; of the usual kind unless it
// says otherwise.
func (c *call) key() (registry.Key, error) {
	if err := c.need(paramService, paramIP, paramPort); err != nil {
		return registry.Key{}, err
	}
	port, err := strconv.ParseUint(c.form.text(paramPort), 10, 16)
	if err != nil {
		return registry.Key{}, unreadable(c.form.text(paramPort))
	}
	return registry.Key{
		Service: c.service, Cluster: c.cluster(), IP: c.form.text(paramIP), Port: uint16(port),
		Ephemeral: c.truth(c.ephemeral, paramEphemeral),
	}, nil
}

func (c *call) cluster() string {
	if name := c.form.text(paramCluster, paramClusterAlias); name != "" {
		return name
	}
	return registry.DefaultCluster
}

// truth reads a boolean. True are true, t, yes, y, on in any case
// (com.alibaba.nacos.common.utils.ConvertUtils), and, unlike there, 1.
func (c *call) truth(otherwise bool, names ...string) bool {
	switch strings.ToLower(c.form.text(names...)) {
	case "":
		return otherwise
	case "true", "t", "yes", "y", "on", "1":
		return true
	}
	return false
}

// weight reads the weight, 1 when there is none.
func (c *call) weight() (float64, error) {
	text := c.form.text(paramWeight)
	if text == "" {
		return 1, nil
	}
	w, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, unreadable(text)
	}
	if !(w >= 0 && w <= 10000) {
		return 0, badRequest("instance format invalid: The weights range from 0.0 to 10000.0")
	}
	return w, nil
}

// paging reads pageNo and pageSize and gives the part of n items they mean.
func (c *call) paging(n int) (from, to int, err error) {
	if err := c.need(paramPageNo, paramPageSize); err != nil {
		return 0, 0, err
	}
	return page(n, c.form.text(paramPageNo), c.form.text(paramPageSize))
}

// lenientPaging is paging where Nacos takes for 0 what is no number.
func (c *call) lenientPaging(n int, number, length string) (from, to int) {
	read := func(name, otherwise string) int {
		value, err := strconv.Atoi(c.form.or(name, otherwise))
		if err != nil {
			return 0
		}
		return value
	}
	return cutPage(read(paramPageNo, number), read(paramPageSize, length), n)
}

// page gives the part of n items that a page of this number and size has.
func page(n int, number, length string) (from, to int, err error) {
	no, err := strconv.Atoi(number)
	if err != nil {
		return 0, 0, unreadable(number)
	}
	size, err := strconv.Atoi(length)
	if err != nil {
		return 0, 0, unreadable(length)
	}
	from, to = cutPage(no, size, n)
	return from, to, nil
}

// cutPage gives the part of n items that a page means; a page before the first
// is the first.
func cutPage(no, size, n int) (from, to int) {
	no, size = max(no, 1), max(size, 0)
	if size == 0 || no-1 > n/size {
		return n, n
	}
	from = (no - 1) * size
	return min(from, n), min(from+size, n)
}
