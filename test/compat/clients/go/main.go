// A client of nacos-sdk-go v1, driven by lines on standard input: see
// client_test.go for the words.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/nacos-group/nacos-sdk-go/clients"
	"github.com/nacos-group/nacos-sdk-go/clients/naming_client"
	"github.com/nacos-group/nacos-sdk-go/common/constant"
	"github.com/nacos-group/nacos-sdk-go/model"
	"github.com/nacos-group/nacos-sdk-go/vo"
)

type host struct {
	IP       string            `json:"ip"`
	Port     uint64            `json:"port"`
	Healthy  bool              `json:"healthy"`
	Metadata map[string]string `json:"metadata"`
}

type event struct {
	Event   string `json:"event"`
	Word    string `json:"word,omitempty"`
	Why     string `json:"why,omitempty"`
	Service string `json:"service,omitempty"`
	Hosts   []host `json:"hosts,omitempty"`
}

var saying sync.Mutex

func say(e event) {
	saying.Lock()
	defer saying.Unlock()
	if err := json.NewEncoder(os.Stdout).Encode(e); err != nil {
		panic(err)
	}
}

func main() {
	client, err := connect(os.Args[1], os.Args[2], os.Args[3], os.Args[4])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	say(event{Event: "ready"})
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		words := strings.Split(in.Text(), " ")
		if err := obey(client, words); err != nil {
			say(event{Event: "failed", Word: words[0], Why: err.Error()})
			continue
		}
		say(event{Event: "done", Word: words[0]})
	}
}

func connect(server, namespace, username, password string) (naming_client.INamingClient, error) {
	ip, portText, _ := strings.Cut(server, ":")
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "compat-go-")
	if err != nil {
		return nil, err
	}
	return clients.NewNamingClient(vo.NacosClientParam{
		ServerConfigs: []constant.ServerConfig{{IpAddr: ip, Port: port, ContextPath: "/nacos"}},
		ClientConfig: &constant.ClientConfig{
			NamespaceId: namespace, Username: username, Password: password,
			CacheDir: folder, LogDir: folder, NotLoadCacheAtStart: true, TimeoutMs: 5000,
		},
	})
}

func obey(client naming_client.INamingClient, words []string) error {
	service := words[1]
	switch words[0] {
	case "register":
		port, metadata, err := instance(words)
		if err != nil {
			return err
		}
		ok, err := client.RegisterInstance(vo.RegisterInstanceParam{
			Ip: words[2], Port: port, Weight: 1, Enable: true, Healthy: true, Ephemeral: true, Metadata: metadata, ServiceName: service,
		})
		return accepted(ok, err)
	case "deregister":
		port, _, err := instance(words)
		if err != nil {
			return err
		}
		ok, err := client.DeregisterInstance(vo.DeregisterInstanceParam{Ip: words[2], Port: port, Ephemeral: true, ServiceName: service})
		return accepted(ok, err)
	case "subscribe":
		return client.Subscribe(&vo.SubscribeParam{ServiceName: service, SubscribeCallback: func(all []model.SubscribeService, err error) {
			e := event{Event: "hosts", Service: service}
			for _, one := range all {
				e.Hosts = append(e.Hosts, host{one.Ip, one.Port, one.Healthy, one.Metadata})
			}
			say(e)
		}})
	}
	return fmt.Errorf("unknown word %q", words[0])
}

func instance(words []string) (port uint64, metadata map[string]string, err error) {
	if port, err = strconv.ParseUint(words[3], 10, 16); err != nil || len(words) < 5 {
		return port, nil, err
	}
	return port, metadata, json.Unmarshal([]byte(words[4]), &metadata)
}

func accepted(ok bool, err error) error {
	if err == nil && !ok {
		return fmt.Errorf("the registry did not say ok")
	}
	return err
}
