// OpenAI's official Node client, unchanged; what it saw is written as JSON.
import { createRequire } from "node:module";
const require = createRequire(process.argv[2]);
const { OpenAI } = require("openai");
const client = new OpenAI({ baseURL: process.argv[3], apiKey: process.argv[4], maxRetries: 0 });
const hello = [{ role: "user", content: "hello" }];
const tools = [{ type: "function", function: { name: "weather", parameters: { type: "object" } } }];
const seen = {};

seen.models = [];
for await (const model of client.models.list()) seen.models.push(model.id);

const { data, response } = await client.chat.completions
  .create({ model: "ada", messages: hello }).withResponse();
seen.chat = data.choices[0].message.content;
seen.requestId = response.headers.get("x-request-id") === data._request_id;

const stream = await client.chat.completions.create({
  model: "ada", messages: hello, stream: true, stream_options: { include_usage: true } });
seen.stream = "";
for await (const chunk of stream) {
  seen.stream += chunk.choices[0]?.delta?.content ?? "";
  seen.usage = chunk.usage?.total_tokens ?? null;
}

const asked = await client.chat.completions.create({ model: "ada", messages: hello, tools });
const message = asked.choices[0].message;
seen.finish = asked.choices[0].finish_reason;
const results = message.tool_calls.map((call) => ({
  role: "tool", tool_call_id: call.id, content: "sunny" }));
const after = await client.chat.completions.create({
  model: "ada", messages: [...hello, message, ...results], tools });
seen.after = after.choices[0].message.content;

const streamed = client.chat.completions.stream({ model: "ada", messages: hello, tools });
seen.streamedCall = (await streamed.finalMessage()).tool_calls[0].function.arguments;

const form = { type: "json_schema", json_schema: { name: "city", schema: { type: "object" } } };
const formed = await client.chat.completions.create({
  model: "ada", messages: hello, response_format: form });
seen.formed = JSON.parse(formed.choices[0].message.content);

const picture = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } };
await client.chat.completions.create({
  model: "ada", messages: [{ role: "user", content: [{ type: "text", text: "look" }, picture] }] });

const embedded = await client.embeddings.create({ model: "default", input: ["one", "two"] });
seen.embeddings = embedded.data.map((row) => row.embedding.length);

const likely = await client.chat.completions.create({
  model: "ada", messages: hello, logprobs: true, top_logprobs: 1 });
seen.likely = likely.choices[0].logprobs.content.map((each) => each.token);

const failing = [
  () => client.chat.completions.create({ model: "service:nobody", messages: hello }),
  () => client.chat.completions.create({ model: "ada", messages: hello, n: 2 }),
  () => client.models.retrieve("gpt-4o"),
];
seen.errors = [];
for (const ask of failing) {
  try { await ask(); } catch (error) { seen.errors.push([error.status, error.error]); }
}
console.log(JSON.stringify(seen));
