/** An agent with the compaction, as a user writes it: its provider, gateway and threshold are the arguments. */
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, isStepCount, jsonSchema, streamText, tool } from "ai";
import { compactSteps } from "./index.js";

const [provider, gateway, above, streams] = process.argv.slice(2);
const read = tool({
  description: "Read a part of a program.",
  inputSchema: jsonSchema({ type: "object", properties: { path: { type: "string" } } }),
  execute: ({ path }) => [`# ${path}`, ...Array.from({ length: 100 }, (_, at) => `${at}: limit_${at} = ${(at * 31) % 89}`)].join("\n"),
});
const call = {
  model: createOpenAI({ baseURL: provider, apiKey: "any" }).chat("gpt-5"),
  tools: { read },
  messages: [{ role: "user", content: [{ type: "text", text: "Where is the limit set?" }] }],
  maxRetries: 0,
  stopWhen: isStepCount(100),
  prepareStep: compactSteps({ gateway, above: Number(above) }),
};
const result = streams ? streamText(call) : await generateText(call);
console.log(JSON.stringify({ text: await result.text, messages: await result.responseMessages }));
