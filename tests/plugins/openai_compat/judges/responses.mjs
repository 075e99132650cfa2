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

// A stream of the background is left, and read on behind the last event that came.
const numbers = [];
const left = await client.responses.create({
  model: "ada", input: "one two three", background: true, stream: true });
let known;
for await (const event of left) {
  known ??= event.response.id;
  numbers.push(event.sequence_number);
  if (event.type === "response.output_text.delta") break;
}
const again = await client.responses.retrieve(known, {
  stream: true, starting_after: numbers.at(-1) });
for await (const event of again) {
  numbers.push(event.sequence_number);
  if (event.type === "response.completed") seen.takenUp = event.response.output[0].content[0].text;
}
seen.numbered = numbers.every((number, at) => number === at);
const helper = client.responses.stream({ response_id: known, starting_after: 3 });
seen.helped = [];
for await (const event of helper) seen.helped.push(event.sequence_number);
seen.helped = seen.helped[0];

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
