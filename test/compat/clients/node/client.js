// A client of the npm package nacos, driven by lines on standard input: see
// client_test.go for the words.
'use strict';
const readline = require('node:readline');
const { NacosNamingClient } = require('nacos');

const say = event => process.stdout.write(JSON.stringify(event) + '\n');
const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const [server, namespace, username, password] = process.argv.slice(2);

const toHost = h => ({ ip: h.ip, port: h.port, healthy: h.healthy, metadata: h.metadata });

async function main() {
  const client = new NacosNamingClient({ logger: quiet, serverList: server, namespace, username, password });
  await client.ready();
  const instance = (ip, port, metadata) => ({ ip, port: Number(port), metadata: metadata ? JSON.parse(metadata) : {} });
  const words = {
    register: (service, ip, port, metadata) => client.registerInstance(service, instance(ip, port, metadata)),
    deregister: (service, ip, port) => client.deregisterInstance(service, instance(ip, port)),
    subscribe: async service => client.subscribe(service, hosts => say({ event: 'hosts', service, hosts: hosts.map(toHost) })),
  };
  say({ event: 'ready' });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [word, ...rest] = line.split(' ');
    try {
      await words[word](...rest);
      say({ event: 'done', word });
    } catch (e) {
      say({ event: 'failed', word, why: String(e) });
    }
  }
  process.exit(0);
}

main();
