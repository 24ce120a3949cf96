package main

import (
	"context"
	"fmt"
	"net/url"
)

const beatInstances = 5000

// beatAnswer is what Nacos says to a beat that it knows.
const beatAnswer = `{"clientBeatInterval":5000,"code":10200,"lightBeatEnabled":true}`

func isBeatAnswer(body []byte) bool { return string(body) == beatAnswer }

// beats compares the registry with a bare fasthttp handler that answers the
// same bytes to the same requests.
func (b *bench) beats(ctx context.Context) error {
	registry, address, err := b.registry(ctx, b.temp+"/beats")
	if err != nil {
		return err
	}
	defer registry.stop(15)
	bare, bareAddress, err := b.bare(ctx, []byte(beatAnswer))
	if err != nil {
		return err
	}
	defer bare.stop(9)
	for _, kind := range []struct {
		name, aim string
		request   func(i int) string
	}{
		{"light", "aim 0.90", lightBeat},
		{"full (JSON body)", "aim 0.80", fullBeat},
	} {
		if err := b.compareBeats(ctx, kind.name, kind.aim, kind.request, registry, address, bare, bareAddress); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) compareBeats(ctx context.Context, name, aim string, request func(int) string, registry *process, address string, bare *process, bareAddress string) error {
	requests := make([][]byte, beatInstances)
	for i := range requests {
		requests[i] = []byte(request(i))
	}
	var ratios, ours []float64
	for range b.rounds + 1 { // the first one warms up
		theirs, err := perRequest(ctx, bare, bareAddress, requests, isBeatAnswer)
		if err != nil {
			return err
		}
		own, err := perRequest(ctx, registry, address, requests, isBeatAnswer)
		if err != nil {
			return err
		}
		ratios, ours = append(ratios, float64(theirs)/float64(own)), append(ours, float64(own))
	}
	report("beats/CPU-s, "+name+", of a bare fasthttp handler", spread(ratios[1:]), aim)
	report("beats/CPU-s, "+name, fmt.Sprintf("%.0f", 1e9/median(ours[1:])), "")
	return nil
}

const beatHeaders = "Host: nacos:8848\r\nContent-Type: application/x-www-form-urlencoded\r\nAccept-Charset: UTF-8\r\n" +
	"Accept-Encoding: gzip,deflate,sdch\r\nClient-Version: 1.4.8\r\nUser-Agent: Nacos-Java-Client:v1.4.8\r\n" +
	"RequestId: 6f2b1c1e-9d0a-4a3e-8f57-0a9c6f1f1f11\r\nRequest-Module: Naming\r\nConnection: Keep-Alive\r\n"

func beatAddress(i int) (service, ip string) {
	return fmt.Sprintf("orders-%d", i/10), fmt.Sprintf("10.1.%d.%d", i/250, 1+i%250)
}

func beatQuery(i int) string {
	service, ip := beatAddress(i)
	return "app=unknown&serviceName=DEFAULT_GROUP%40%40" + service + "&namespaceId=public&port=8080&clusterName=DEFAULT&ip=" + ip
}

func lightBeat(i int) string {
	return "PUT /nacos/v1/ns/instance/beat?" + beatQuery(i) + " HTTP/1.1\r\n" + beatHeaders + "Content-Length: 0\r\n\r\n"
}

func fullBeat(i int) string {
	service, ip := beatAddress(i)
	body := "beat=" + url.QueryEscape(`{"cluster":"DEFAULT","ip":"`+ip+`","metadata":{"version":"1.0"},"period":5000,"port":8080,"scheduled":false,"serviceName":"DEFAULT_GROUP@@`+service+`","stopped":false,"weight":1.0}`)
	return "PUT /nacos/v1/ns/instance/beat?" + beatQuery(i) + " HTTP/1.1\r\n" + beatHeaders + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)) + body
}
