package nacos

import (
	"fmt"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/sidebeat/sidebeat/registry"
)

// BenchmarkCatalog asks for a page in the middle of 10 000 services, of which
// ten have no instances.
func BenchmarkCatalog(b *testing.B) {
	s := &Server{Store: registry.NewStore(), Log: silentLog()}
	for i := range 10_000 {
		one := beaten
		one.Name = fmt.Sprintf("orders-%06d", i)
		if err := s.Store.Register(b.Context(), one); err != nil {
			b.Fatal(err)
		}
		if i%1000 == 0 {
			if err := s.Store.Deregister(b.Context(), one.Key); err != nil {
				b.Fatal(err)
			}
		}
	}
	h := s.Handler()
	f := func(name, target string) {
		b.Run(name, func(b *testing.B) {
			ctx := new(fasthttp.RequestCtx)
			ctx.Request.SetRequestURI("/nacos" + target)
			b.ReportAllocs()
			for b.Loop() {
				ctx.Response.Reset()
				h(ctx)
			}
			if ctx.Response.StatusCode() != fasthttp.StatusOK || len(ctx.Response.Body()) < 200 {
				b.Fatalf("%d %s", ctx.Response.StatusCode(), ctx.Response.Body())
			}
		})
	}
	f("v1", "/v1/ns/catalog/services?pageNo=250&pageSize=20")
	f("hasIpCount", "/v1/ns/catalog/services?pageNo=250&pageSize=20&hasIpCount=true")
	f("filter", "/v1/ns/catalog/services?pageNo=1&pageSize=20&serviceNameParam=99")
	f("v2", "/v2/ns/service/list?pageNo=250&pageSize=20")
	f("v3", "/v3/admin/ns/service/list?pageNo=250&pageSize=20")
}
