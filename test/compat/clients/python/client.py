"""A client of nacos-sdk-python, driven by lines on standard input: see
client_test.go for the words."""
import json
import sys

import nacos
from nacos.listener import SubscribeListener


def say(**event):
    print(json.dumps(event), flush=True)


def main():
    server, namespace, username, password = sys.argv[1:5]
    client = nacos.NacosClient(server, namespace=namespace, username=username, password=password)

    def register(service, ip, port, metadata="{}"):
        if not client.add_naming_instance(service, ip, int(port), metadata=json.loads(metadata), heartbeat_interval=5):
            raise RuntimeError("the registry did not say ok")

    def deregister(service, ip, port):
        for beat in client.heartbeats.values():
            beat.stop()
        client.remove_naming_instance(service, ip, int(port))

    def subscribe(service):
        def changed(_event, _instance):
            known = client.subscribed_local_manager.get_local_instances(service) or {}
            say(event="hosts", service=service, hosts=[
                {"ip": h["ip"], "port": h["port"], "healthy": h["healthy"], "metadata": h["metadata"]}
                for h in (i.instance for i in list(known.values()))])
        client.subscribe(SubscribeListener(fn=changed, listener_name=service), listener_interval=1, service_name=service)

    words = {"register": register, "deregister": deregister, "subscribe": subscribe}
    say(event="ready")
    for line in sys.stdin:
        word, *rest = line.rstrip("\n").split(" ")
        try:
            words[word](*rest)
            say(event="done", word=word)
        except Exception as e:  # whatever a client may throw is told
            say(event="failed", word=word, why=repr(e))


main()
