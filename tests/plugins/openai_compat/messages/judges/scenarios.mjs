// Anthropic's official Node client, unchanged; what it saw is written as JSON.
import { createRequire } from "node:module";
const require = createRequire(process.argv[2]);
const { Anthropic } = require("@anthropic-ai/sdk");
const client = new Anthropic({ baseURL: process.argv[3], apiKey: process.argv[4], maxRetries: 0 });
const messages = [{ role: "user", content: "hello" }];
const asked = { model: "ada", max_tokens: 2000, messages };
const tools = [{ name: "weather", input_schema: { type: "object" } }];
const seen = {};

seen.models = [];
for await (const model of client.models.list()) seen.models.push([model.id, model.lifecycle]);

const { data, response } = await client.messages.create(asked).withResponse();
seen.message = [data.content[0].text, data.stop_reason, data.usage.input_tokens];
seen.requestId = response.headers.get("request-id") === data._request_id;

seen.plain = "";
for await (const event of await client.messages.create({ ...asked, stream: true })) {
  if (event.type === "content_block_delta") seen.plain += event.delta.text;
}

const thinking = { type: "enabled", budget_tokens: 1024 };
const stream = client.messages.stream({ ...asked, thinking });
seen.thought = "";
stream.on("thinking", (piece) => { seen.thought += piece; });
const final = await stream.finalMessage();
seen.final = final.content.map((block) => block.type);
seen.signed = final.content[0].signature.length > 0;
seen.tokens = [final.usage.input_tokens, final.usage.output_tokens];

const called = await client.messages.create({ ...asked, tools });
seen.called = [called.stop_reason, called.content.map((block) => block.input)];
const results = called.content.map((block) => ({
  type: "tool_result", tool_use_id: block.id, content: "sunny" }));
const after = await client.messages.create({ ...asked, tools, messages: [
  ...messages, { role: "assistant", content: called.content }, { role: "user", content: results }] });
seen.after = after.content[0].text;

const calling = await client.messages.stream({ ...asked, tools }).finalMessage();
seen.streamedCall = calling.content.map((block) => [block.type, block.input]);

const source = { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" };
const plan = { type: "text", media_type: "text/plain", data: "the plan" };
await client.messages.create({ ...asked, messages: [{ role: "user", content: [
  { type: "image", source }, { type: "document", source: plan }, { type: "text", text: "look" }] }] });

const format = { type: "json_schema", schema: { type: "object" } };
const formed = await client.messages.create({ ...asked, output_config: { format } });
seen.formed = JSON.parse(formed.content[0].text);

seen.counted = (await client.messages.countTokens({ model: "ada", messages, tools })).input_tokens > 10;

const failing = [
  () => client.messages.create({ ...asked, model: "service:nobody" }),
  () => client.messages.create({ ...asked, max_tokens: 0 }),
  () => client.messages.create({ ...asked, tools: [{ type: "bash_20250124", name: "bash" }] }),
  () => client.models.retrieve("service:nobody"),
  () => new Anthropic({ baseURL: process.argv[3], apiKey: "wrong", maxRetries: 0 }).messages.create(asked),
];
seen.errors = [];
for (const ask of failing) {
  try { await ask(); } catch (error) {
    seen.errors.push([error.constructor.name, error.status, error.error.error.type,
      error.requestID === error.error.request_id]);
  }
}
console.log(JSON.stringify(seen));
