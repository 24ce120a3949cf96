package registry

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
)

// typical gives the i-th of many instances: ten to a service, one in two with
// metadata that many share.
func typical(i int, ephemeral bool) Instance {
	one := Instance{
		Key: Key{
			Service:   Service{DefaultNamespace, DefaultGroup, fmt.Sprintf("shop.orders-%06d", i/10)},
			Cluster:   DefaultCluster,
			IP:        fmt.Sprintf("10.%d.%d.%d", i>>16&0xff, i>>8&0xff, i&0xff),
			Port:      8080,
			Ephemeral: ephemeral,
		},
		Weight: 1, Enabled: true, Healthy: true,
	}
	if i%2 == 1 {
		one.Metadata = map[string]string{"version": fmt.Sprintf("1.%d", i%7), "zone": "a"}
	}
	return one
}

func filled(tb testing.TB, n int, ephemeral bool) *Store {
	tb.Helper()
	s := NewStore()
	for i := range n {
		if err := s.Register(tb.Context(), typical(i, ephemeral)); err != nil {
			tb.Fatal(err)
		}
	}
	return s
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// BenchmarkMemoryPerInstance reports the whole heap by the number of instances:
// index, records, beat state, services, metadata.
func BenchmarkMemoryPerInstance(b *testing.B) {
	f := func(n int) {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for range b.N {
				before := heap()
				s := filled(b, n, true)
				b.ReportMetric(float64(heap()-before)/float64(n), "B/inst")
				runtime.KeepAlive(s)
			}
		})
	}
	f(100_000)
	f(1_000_000)
}

func BenchmarkSweep1M(b *testing.B) {
	s := filled(b, 1_000_000, true)
	runtime.GC()
	for b.Loop() {
		s.sweep()
	}
}

func BenchmarkGC1M(b *testing.B) {
	s := filled(b, 1_000_000, true)
	for b.Loop() {
		runtime.GC()
	}
	runtime.KeepAlive(s)
}

func BenchmarkRefresh(b *testing.B) {
	f := func(n int) {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := filled(b, n, true)
			type beat struct{ name, ip []byte }
			beats := make([]beat, 1<<14)
			for i := range beats {
				one := typical(rand.IntN(n), true)
				beats[i] = beat{[]byte(one.Name), []byte(one.IP)}
			}
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				at := &beats[i&(len(beats)-1)]
				if _, known := s.Refresh(publicBytes, groupBytes, at.name, at.ip, 8080); !known {
					b.Fatal("unknown")
				}
				i++
			}
		})
	}
	f(100_000)
	f(1_000_000)
}

func BenchmarkRestore100k(b *testing.B) {
	s := filled(b, 100_000, false)
	image := snapshot(b, s)
	b.SetBytes(int64(len(image)))
	for b.Loop() {
		restored(b, image)
	}
}

func BenchmarkSnapshot100k(b *testing.B) {
	s := filled(b, 100_000, false)
	for b.Loop() {
		if _, err := s.Snapshot(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkApply(b *testing.B) {
	s := NewStore()
	i := 0
	for b.Loop() {
		if err := s.Register(b.Context(), typical(i, false)); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

func BenchmarkView1000(b *testing.B) {
	s := NewStore()
	for i := range 1000 {
		one := typical(i, true)
		one.Name = "big"
		if err := s.Register(b.Context(), one); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		s.View(Service{"", "", "big"}, Query{})
	}
}

func BenchmarkListAll100k(b *testing.B) {
	s := filled(b, 100_000, false)
	for b.Loop() {
		for page, from := (Page{Next: "-"}), ""; page.Next != ""; from = page.Next {
			page, _ = s.List(b.Context(), from)
		}
	}
}

// BenchmarkServices100k reads the names of 100 000 services: none came or went
// since, one did, and those with instances while a hundred have none.
func BenchmarkServices100k(b *testing.B) {
	s := NewStore()
	for i := range 100_000 {
		if err := s.Register(b.Context(), typical(10*i, true)); err != nil {
			b.Fatal(err)
		}
	}
	s.Services(DefaultNamespace, "")
	b.Run("same", func(b *testing.B) {
		for b.Loop() {
			s.Services(DefaultNamespace, "")
		}
	})
	b.Run("one", func(b *testing.B) {
		one := typical(5, true)
		one.Name = "shop.orders-050000-new"
		for i := 0; b.Loop(); i++ {
			change := func() error { return s.Register(b.Context(), one) }
			if i%2 == 1 {
				change = func() error {
					return errors.Join(s.Deregister(b.Context(), one.Key), s.DeleteService(b.Context(), one.Service))
				}
			}
			if err := change(); err != nil {
				b.Fatal(err)
			}
			s.Services(DefaultNamespace, "")
		}
	})
	b.Run("inhabited", func(b *testing.B) {
		for i := range 100 {
			if err := s.Deregister(b.Context(), typical(9990*i, true).Key); err != nil {
				b.Fatal(err)
			}
		}
		for b.Loop() {
			s.Inhabited(DefaultNamespace)
		}
	})
}
