// Makes calls with OpenAI clients at their default settings and prints what became
// of them. The only argument names the folder whose node_modules has the clients;
// stdin is a JSON list of {id, lib, url, key, text}.
const { createRequire } = require('node:module');
const path = require('node:path');

const load = createRequire(path.join(process.argv[2], 'package.json'));
const { OpenAI } = load('openai');
const { ChatOpenAI } = load('@langchain/openai');
const { generateText, streamText } = load('ai');
const { createOpenAICompatible } = load('@ai-sdk/openai-compatible');
const { createOpenAI } = load('@ai-sdk/openai');

const libs = {
  async openai({ url, key, text, user }) {
    const client = new OpenAI({ baseURL: url, apiKey: key });
    const r = await client.chat.completions.create({ model: 'claybot', user, messages: [{ role: 'user', content: text }] });
    return r.choices[0].message.content;
  },
  async 'openai stream'({ url, key, text, user }) {
    const client = new OpenAI({ baseURL: url, apiKey: key });
    const stream = await client.chat.completions.create({ model: 'claybot', user, stream: true, messages: [{ role: 'user', content: text }] });
    let all = '';
    for await (const chunk of stream) all += chunk.choices[0]?.delta?.content ?? '';
    return all;
  },
  async 'openai responses'({ url, key, text, user }) {
    const client = new OpenAI({ baseURL: url, apiKey: key });
    const r = await client.responses.create({ model: 'claybot', user, input: text });
    if (r.status === 'failed') throw new Error(r.error.message);
    return r.output_text;
  },
  async 'openai responses stream'({ url, key, text, user }) {
    const client = new OpenAI({ baseURL: url, apiKey: key });
    const stream = client.responses.stream({ model: 'claybot', user, input: text });
    const tools = [];
    stream.on('response.mcp_call.completed', (e) => tools.push(e.item_id));
    const r = await stream.finalResponse();
    if (r.status === 'failed') throw new Error(r.error.message);
    if (tools.length !== 1 || !r.output.some((i) => i.type === 'mcp_call' && i.id === tools[0])) throw new Error(`tools ${tools}`);
    return r.output_text;
  },
  async 'langchain responses'({ url, key, text, user }) {
    const model = new ChatOpenAI({ model: 'claybot', apiKey: key, user, useResponsesApi: true, configuration: { baseURL: url } });
    return (await model.invoke(text)).text;
  },
  async langchain({ url, key, text, user }) {
    return (await new ChatOpenAI({ model: 'claybot', apiKey: key, user, configuration: { baseURL: url } }).invoke(text)).content;
  },
  async 'langchain stream'({ url, key, text, user }) {
    let all = '';
    for await (const chunk of await new ChatOpenAI({ model: 'claybot', apiKey: key, user, configuration: { baseURL: url } }).stream(text)) all += chunk.content;
    return all;
  },
  async ai({ url, key, text, user }) {
    const model = createOpenAICompatible({ name: 'claybot', baseURL: url, apiKey: key }).chatModel('claybot');
    return (await generateText({ model, prompt: text, providerOptions: { openaiCompatible: { user } } })).text;
  },
  async 'ai stream'({ url, key, text, user }) {
    const model = createOpenAICompatible({ name: 'claybot', baseURL: url, apiKey: key }).chatModel('claybot');
    let all = '';
    for await (const part of streamText({ model, prompt: text, onError() {}, providerOptions: { openaiCompatible: { user } } }).fullStream) {
      if (part.type === 'error') throw part.error instanceof Error ? part.error : new Error(JSON.stringify(part.error));
      if (part.type === 'text-delta') all += part.text;
    }
    return all;
  },
};

Object.assign(libs, {
  async 'ai responses'({ url, key, text, user }) {
    const model = createOpenAI({ baseURL: url, apiKey: key })('claybot'); // by the responses protocol
    return (await generateText({ model, prompt: text, providerOptions: { openai: { user } } })).text;
  },
  async 'ai responses stream'({ url, key, text, user }) {
    const model = createOpenAI({ baseURL: url, apiKey: key })('claybot');
    let all = '';
    for await (const part of streamText({ model, prompt: text, onError() {}, providerOptions: { openai: { user } } }).fullStream) {
      if (part.type === 'error') throw part.error instanceof Error ? part.error : new Error(JSON.stringify(part.error));
      if (part.type === 'text-delta') all += part.text;
    }
    return all;
  },
});

async function call(c) {
  try {
    return { id: c.id, text: await libs[c.lib]({ ...c, user: c.id }) };
  } catch (e) {
    return { id: c.id, error: `${e.name}: ${e.message} ${e.responseBody ?? ''}` };
  }
}

(async () => {
  let input = '';
  for await (const b of process.stdin) input += b;
  console.log(JSON.stringify(await Promise.all(JSON.parse(input).map(call))));
  process.exit(0); // agents of connections would keep it
})();
