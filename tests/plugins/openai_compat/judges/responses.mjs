// OpenAI's official Node client at /v1/responses; what it saw is written as JSON.
import { createRequire } from "node:module";
const require = createRequire(process.argv[2]);
const { OpenAI } = require("openai");
const client = new OpenAI({ baseURL: process.argv[3], apiKey: process.argv[4], maxRetries: 0 });
const tools = [{ type: "function", name: "weather", parameters: { type: "object" }, strict: false }];
const seen = {};

const first = await client.responses.create({ model: "ada", input: "hello" });
seen.text = first.output_text;
seen.same = (await client.responses.retrieve(first.id)).id === first.id;
seen.items = [];
for await (const item of client.responses.inputItems.list(first.id)) seen.items.push(item.content[0].text);

const stream = await client.responses.create({ model: "ada", input: "hello", stream: true });
seen.events = [];
for await (const event of stream)
  if (seen.events.at(-1) !== event.type) seen.events.push(event.type);

const helped = client.responses.stream({ model: "ada", input: "hello", tools });
helped.on("response.output_text.delta", () => {});
const called = await helped.finalResponse();
seen.call = called.output[0].arguments;
const after = await client.responses.create({
  model: "ada", tools, previous_response_id: called.id,
  input: [{ type: "function_call_output", call_id: called.output[0].call_id, output: "sunny" }] });
seen.after = after.output_text;

const format = { type: "json_schema", name: "city", schema: { type: "object" } };
const formed = await client.responses.parse({ model: "ada", input: "hello", text: { format } });
seen.formed = JSON.parse(formed.output_text);

let slow = await client.responses.create({ model: "ada", input: "slow", background: true });
while (["queued", "in_progress"].includes(slow.status)) slow = await client.responses.retrieve(slow.id);
seen.background = [slow.status, slow.output_text];
seen.cancelled = (await client.responses.cancel(slow.id)).status;

await client.responses.delete(first.id);
const failing = [
  () => client.responses.retrieve(first.id),
  () => client.responses.create({ model: "ada", input: "x", previous_response_id: first.id }),
  () => client.responses.create({ model: "ada", input: "x", truncation: "auto" }),
  () => client.responses.cancel(after.id),
];
seen.errors = [];
for (const ask of failing) {
  try { await ask(); } catch (error) { seen.errors.push([error.status, error.error.split(":")[0]]); }
}
console.log(JSON.stringify(seen));
