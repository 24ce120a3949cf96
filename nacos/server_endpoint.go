package nacos

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/sidebeat/sidebeat/registry"
)

// endpoint is an operation as v2 or v3 offers it. Names are not taken apart
// there: G@@s is a service of just that name.
type endpoint struct {
	op        operation
	needs     []string // parameters that it cannot do without
	grouped   bool     // except here, where the name has to be group@@name
	spring    bool     // Spring says what is missing, not Nacos
	v3        bool
	ofService bool // bad metadata is that of a service, not of an instance
}

func (e endpoint) handler() handler {
	return func(s *Server, c *call) {
		if err := e.prepare(c); err != nil {
			c.writeCoded(err)
			return
		}
		c.writeEnvelope(s.run(e.op, c))
	}
}

// enveloped is an operation without names.
func enveloped(op operation) handler {
	return func(s *Server, c *call) { c.writeEnvelope(s.run(op, c)) }
}

// prepare does what filters, forms and controllers of Nacos do before they call
// the operation, in their order.
func (e endpoint) prepare(c *call) error {
	split := c.names()
	if err := e.check(c, split); err != nil {
		return err
	}
	if !e.grouped {
		c.service.Group = c.form.or(paramGroup, registry.DefaultGroup)
		c.service.Name = c.form.text(paramService)
	}
	if err := c.plainValues(); err != nil {
		return err
	}
	for _, name := range e.needs {
		if c.form.text(name) != "" || e.spring && c.form.given(name) && javaTypes[name] == "" {
			continue
		}
		return e.missing(c, name)
	}
	if e.grouped && (split != nil || !strings.Contains(c.form.text(paramService), groupSeparator)) {
		return invalid(codeInvalid, "Param 'serviceName' is illegal, "+badFormat)
	}
	return c.plainWeight()
}

// check is call.check, with the words that v2 and v3 have for bad metadata.
// 3.0.3 answers those 200 and nothing, which no client understands.
func (e endpoint) check(c *call, split error) error {
	_, err := parseMetadata(c.form.text(paramMetadata))
	switch {
	case err == nil && split == nil:
		return c.check()
	case err == nil:
		return invalid(codeInvalid, "Param 'serviceName' is illegal, "+badFormat)
	case !e.v3:
		return boot(http.StatusInternalServerError, "ErrCode:400, ErrMsg:"+err.Error())
	case e.ofService:
		return invalid(codeServiceMetadata, err.Error())
	}
	return invalid(codeMetadata, err.Error())
}

// javaTypes are the types of parameters that are no String.
var javaTypes = map[string]string{
	paramPort: "Integer", paramCheckPort: "Integer", paramWeight: "Double", paramEnabled: "Boolean",
	paramHealthy: "Boolean", paramUseInstance: "Boolean",
}

func (e endpoint) missing(c *call, name string) error {
	kind := javaTypes[name]
	if kind == "" {
		kind = "String"
	}
	if e.spring && c.form.given(name) {
		return invalid(codeMissing, "Required request parameter '"+name+"' for method parameter type "+kind+" is present but converted to null")
	}
	if e.spring {
		return invalid(codeMissing, "Required request parameter '"+name+"' for method parameter type "+kind+" is not present")
	}
	return invalid(codeMissing, "Required parameter '"+name+"' type "+kind+" is not present")
}

// Parameters whose values v2 and v3 read as Spring does.
var (
	booleans = []string{
		paramEnabled, paramHealthy, paramEphemeral, paramHealthyOnly, paramEnabledOnly, paramUseInstance, paramHeartBeat,
		paramOnlyStatus, paramWithInstances, paramIgnoreEmpty, paramDebug,
	}
	integers = []string{paramPageNo, paramPageSize}
	decimals = []string{paramWeight, paramThreshold}
)

// plainValues refuses booleans and numbers that are none: 400 with the name,
// where Nacos answers 500 with what its framework makes of it.
func (c *call) plainValues() error {
	for _, name := range booleans {
		switch value := c.form.text(name); strings.ToLower(value) {
		case "", "true", "on", "yes", "1", "false", "off", "no", "0":
		default:
			return illegal(name, "Invalid boolean value ["+value+"]")
		}
	}
	for _, name := range integers {
		if value := c.form.text(name); value != "" {
			if _, err := strconv.ParseInt(value, 10, 32); err != nil {
				return illegal(name, `For input string: "`+value+`"`)
			}
		}
	}
	for _, name := range decimals {
		if value := c.form.text(name); value != "" {
			if _, err := strconv.ParseFloat(value, 32); err != nil {
				return illegal(name, `For input string: "`+value+`"`)
			}
		}
	}
	return nil
}

func illegal(name, why string) error {
	return invalid(codeInvalid, "Param '"+name+"' is illegal, "+why)
}

// number gives an integer that plainValues has seen.
func (c *call) number(name string, otherwise int) int {
	n, err := strconv.Atoi(c.form.text(name))
	if err != nil {
		return otherwise
	}
	return n
}

func notPositive(name string, value int) error {
	return invalid(codeInvalid, "Required parameter '"+name+"' should be positive integer, current is "+strconv.Itoa(value))
}

// plainWeight refuses a weight out of range.
func (c *call) plainWeight() error {
	value := c.form.text(paramWeight)
	if value == "" {
		return nil
	}
	weight, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return illegal(paramWeight, err.Error())
	}
	return registry.CheckWeight(weight)
}
