package registry

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
)

// fields lists the switches for both ways, in the order of the snapshot.
func (w *Switches) fields(c *codec) {
	c.texts(&w.Masters)
	for _, n := range []*int64{
		&w.PushCacheMillis, &w.ClientBeatInterval, &w.CacheMillis,
		&w.ServerStatusMillis, &w.ServiceStatusMillis, &w.DistroExpiredMillis,
	} {
		c.whole(n)
	}
	c.small(&w.DistroThreshold)
	c.bits(&w.HealthCheckEnabled, &w.AutoChangeHealth, &w.DistroEnabled, &w.EnableStandalone, &w.PushEnabled)
	c.bits(&w.DisableAddIP, &w.SendBeatOnly, &w.LightBeatEnabled, &w.EphemeralByDefault)
	c.integer(&w.CheckTimes)
	for _, p := range []*HealthParams{&w.HTTPHealth, &w.TCPHealth, &w.MySQLHealth} {
		p.fields(c)
	}
	v := &w.PushVersions
	for _, text := range []*string{&v.Go, &v.Java, &v.Python, &v.C, &v.CSharp} {
		c.text(text)
	}
	c.statuses(&w.LimitedURLs)
	c.maybe(&w.OverriddenStatus)
}

func (p *HealthParams) fields(c *codec) {
	most, least := int(p.Max), int(p.Min)
	c.integer(&most)
	c.integer(&least)
	c.small(&p.Factor)
	p.Max, p.Min = int32(most), int32(least)
}

// whole is a number that may be below 0.
func (c *codec) whole(n *int64) {
	folded := uint64(*n)<<1 ^ uint64(*n>>63)
	c.number(&folded)
	*n = int64(folded>>1) ^ -int64(folded&1)
}

// integer is a number of 32 bits that may be below 0.
func (c *codec) integer(n *int) {
	value := int64(*n)
	if c.whole(&value); value > math.MaxInt32 || value < math.MinInt32 {
		c.tear()
		return
	}
	*n = int(value)
}

func (c *codec) small(f *float32) {
	if !c.reading {
		c.buf = binary.LittleEndian.AppendUint32(c.buf, math.Float32bits(*f))
		return
	}
	if len(c.buf) < 4 {
		c.tear()
		return
	}
	*f, c.buf = math.Float32frombits(binary.LittleEndian.Uint32(c.buf)), c.buf[4:]
}

// texts keeps nil and none apart by not writing an empty list.
func (c *codec) texts(all *[]string) {
	n := c.count(len(*all))
	if c.reading && n > 0 {
		*all = make([]string, n)
	}
	for i := range *all {
		c.text(&(*all)[i])
	}
}

// maybe is a text that need not be there.
func (c *codec) maybe(text **string) {
	there := *text != nil
	c.bits(&there)
	if !there {
		return
	}
	if c.reading {
		*text = new(string)
	}
	c.text(*text)
}

func (c *codec) statuses(all *map[string]int) {
	n := c.count(len(*all))
	if !c.reading {
		for _, path := range slices.Sorted(maps.Keys(*all)) {
			status := (*all)[path]
			c.text(&path)
			c.integer(&status)
		}
		return
	}
	for range n {
		var path string
		var status int
		c.text(&path)
		c.integer(&status)
		if *all == nil {
			*all = map[string]int{}
		}
		(*all)[path] = status
	}
}

// namespaces writes the map, or reads one when the codec does.
func (c *codec) namespaces(all map[string]Namespace) map[string]Namespace {
	n := c.count(len(all))
	if !c.reading {
		for _, id := range slices.Sorted(maps.Keys(all)) {
			one := all[id]
			one.fields(c)
		}
		return all
	}
	all = make(map[string]Namespace, n)
	for range n {
		var one Namespace
		one.fields(c)
		all[one.ID] = one
	}
	return all
}
