package nacos

import (
	"encoding/json"
	"testing"
)

// TestAsSeen holds answers that a real 2.5.1 gave when it was asked what no
// recording asks.
func TestAsSeen(t *testing.T) {
	inBubble(t, &Server{}, func(t *testing.T, d dialer) {
		const ns, one = "/nacos/v1/ns", "serviceName=s&ip=10.0.0.1&port=8080"
		d.wants(t, 200, "ok", "POST", ns+"/instance", one+"&metadata=k=v")
		d.wants(t, 200, "ok", "POST", ns+"/instance", "serviceName=s&ip=10.0.0.2&port=8080&clusterName=C1")
		d.wants(t, 200, "ok", "POST", ns+"/instance", "serviceName=p&ip=10.0.0.1&port=8080&ephemeral=false")

		// A batch means the instances that it lists, ports as text too, whatever
		// kind it names. What is no list means nobody.
		const batch = ns + "/instance/metadata/batch?serviceName=s&metadata=b=2&instances="
		const first = `[{"ip":"10.0.0.1","port":"8080","ephemeral":"true"}]`
		for _, kind := range []string{"", "&consistencyType=ephemeral", "&consistencyType=persist", "&consistencyType=x"} {
			for _, method := range []string{"PUT", "DELETE"} {
				d.wants(t, 200, `{"updated":["10.0.0.1:8080:unknown:DEFAULT:ephemeral"]}`, method, batch+first+kind, "")
			}
		}
		d.wants(t, 400, "Param 'instances' is illegal, it should be a list of ip, port and clusterName in JSON",
			"PUT", batch+"x&consistencyType=ephemeral", "")

		// Instances are shown when they are asked for, not otherwise.
		const p = `{"name":"p","groupName":"DEFAULT_GROUP","clusterCount":1,"ipCount":1,"healthyInstanceCount":1,"triggerFlag":"false"}`
		d.wants(t, 200, `{"count":1,"serviceList":[`+p+`]}`, "GET", ns+"/catalog/services?pageNo=1&pageSize=10&serviceNameParam=p", "")

		// One cluster is no list of clusters, except where lists are asked for.
		const illegal = "Param 'cluster' is illegal, illegal characters should not appear in the param.\r\n"
		d.wants(t, 400, illegal, "GET", ns+"/instance?"+one+"&clusterName=a,b", "")
		d.wants(t, 400, illegal, "DELETE", ns+"/instance?"+one+"&clusterName=a,b", "")
		d.wants(t, 400, illegal, "PUT", ns+"/cluster", "serviceName=p&clusterName=a,b&checkPort=80&useInstancePort4Check=true&healthChecker={}")

		// What is no number is 0.
		d.wants(t, 200, `{"count":2,"doms":["p","s"]}`, "GET", ns+"/service/list?pageNo=x&pageSize=10", "")
		d.wants(t, 200, `{"count":2,"doms":[]}`, "GET", ns+"/service/list?pageNo=1&pageSize=x", "")
		d.wants(t, 200, `{"subscribers":[],"count":0}`, "GET", ns+"/service/subscribers?serviceName=s&pageNo=x", "")

		// An empty value is given all the same.
		d.wants(t, 200, "ok", "PUT", ns+"/operator/switches?entry=nothing&value=", "")
		d.wants(t, 404, `{"code":20004,"message":"resource not found","data":"clientId [  ] not exist"}`, "GET", "/nacos/v2/ns/client?clientId=", "")
		d.wants(t, 400, `{"code":10000,"message":"parameter missing","data":"Required request parameter 'clientId' for method parameter type String is not present"}`,
			"GET", "/nacos/v2/ns/client", "")
		d.wants(t, 400, `{"code":10000,"message":"parameter missing","data":"Required request parameter 'port' for method parameter type Integer is present but converted to null"}`,
			"PATCH", "/nacos/v2/ns/instance?"+"serviceName=s&ip=10.0.0.1&port=&weight=1&enabled=true&metadata=", "")

		// Labels are compared with themselves.
		label := func(status int, body, expression string) {
			t.Helper()
			d.wants(t, status, body, "PUT", ns+"/service", `serviceName=s&protectThreshold=0&selector={"type":"label","expression":"`+expression+`"}`)
		}
		const unread = "Selector parses failed: parse expression failed!"
		label(200, "ok", "CONSUMER.label.zone %3D PROVIDER.label.zone")
		label(200, "ok", "CONSUMER.label.a%3DPROVIDER.label.a%26CONSUMER.label.b%3DPROVIDER.label.b")
		label(200, "ok", "")
		label(500, unread, "nonsense")
		label(500, unread, "CONSUMER.label.a%3DPROVIDER.label.b")
		label(500, unread, "CONSUMER.label.a%3DPROVIDER.label.a%26x")

		// A service that is not there, asked for on v2.
		d.wants(t, 400, `{"code":21004,"message":"instance error","data":"service not found, namespace: public, service: `+
			`Service{namespace='public', group='DEFAULT_GROUP', name='none', ephemeral=true, revision=0}"}`,
			"PUT", "/nacos/v2/ns/instance", "serviceName=none&ip=10.0.0.1&port=8080")
		const members = "/nacos/v2/ns/catalog/instances?pageNo=1&pageSize=10&serviceName="
		d.wants(t, 200, `{"code":0,"message":"success","data":{"count":0}}`, "GET", members+"none", "")
		d.wants(t, 200, `{"code":0,"message":"success","data":{"count":0}}`, "GET", members+"DEFAULT_GROUP@@s&enabledOnly=false", "")
		if got := d.send(t, "GET", members+"DEFAULT_GROUP@@s&healthyOnly=true", ""); got.status != 200 || len(got.body) < 400 {
			t.Errorf("members: %v", got)
		}
		if got := d.send(t, "GET", ns, ""); got.status != 501 {
			t.Errorf("%s: %v", ns, got)
		}

		// Of v3, by a real 3.0.3.
		d.wants(t, 400, `{"code":10000,"message":"parameter missing","data":"Required request parameter 'clientId' for method parameter type String is not present"}`,
			"GET", v3Admin+"/client", "")
		d.wants(t, 404, `{"code":20004,"message":"resource not found","data":"clientId [  ] not exist"}`, "GET", v3Admin+"/client/publish/list?clientId=", "")
		d.wants(t, 400, `{"code":10000,"message":"parameter missing","data":"Required request parameter 'ip' for method parameter type String is not present"}`,
			"GET", v3Admin+"/client/distro?port=8080", "")
		d.wants(t, 500, `{"code":30000,"message":"server error","data":"`+unread+`"}`, "PUT", v3Admin+"/service",
			`serviceName=s&protectThreshold=0&selector={"type":"label","expression":"nonsense"}`)

		// Clients are counted once, whatever they publish.
		d.wants(t, 200, "ok", "POST", ns+"/instance", "serviceName=other&ip=10.0.0.1&port=8080")
		var figures metricsBody
		got := d.send(t, "GET", ns+"/operator/metrics?onlyStatus=false", "")
		if err := json.Unmarshal([]byte(got.body), &figures); err != nil {
			t.Fatal(err)
		}
		if figures.Clients != 3 || figures.EphemeralClients != 2 || figures.PersistentClients != 1 || *figures.ResponsibleInstances != 4 {
			t.Errorf("%+v", figures)
		}
	})
}
