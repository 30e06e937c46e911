// Reads the events of a run with the client eventsource at its defaults, and prints their ids and what the
// last says. The arguments are the folder whose node_modules has the client, and the address of the stream;
// CLAYBOT_TOKEN is that of the caller.
const { createRequire } = require('node:module');
const path = require('node:path');

const load = createRequire(path.join(process.argv[2], 'package.json'));
const { EventSource } = load('eventsource');

const source = new EventSource(process.argv[3], {
  fetch: (url, init) => fetch(url, { ...init, headers: { ...init.headers, Authorization: `Bearer ${process.env.CLAYBOT_TOKEN}` } }),
});
const ids = [];
let connections = 0;
source.onopen = () => connections++;
for (const type of ['RunStarted', 'AssistantMessage', 'ToolCalled', 'ToolSucceeded', 'NodeStarted', 'NodeFinished', 'RunFinished']) {
  source.addEventListener(type, (e) => {
    ids.push(Number(e.lastEventId));
    if (type !== 'RunFinished') return;
    console.log(JSON.stringify({ ids, connections, output: JSON.parse(e.data).data.output }));
    source.close();
    process.exit(0);
  });
}
