// Calls of the official SDK with nock's recorder on; writes what nock recorded.
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";

const [packages, target, ...questions] = process.argv.slice(2);
const load = createRequire(packages);
const nock = load("nock");
const OpenAI = load("openai");

nock.recorder.rec({ output_objects: true, dont_print: true });
const client = new OpenAI({ maxRetries: 0 });
for (const stream of [false, true]) {
  const answer = await client.chat.completions.create({
    model: "gpt-4o",
    messages: questions.map((content) => ({ role: "user", content })),
    tools: [
      {
        type: "function",
        function: {
          name: "read",
          description: "Read a file.",
          parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
        },
      },
    ],
    stream,
  });
  if (stream) for await (const _ of answer);
}
writeFileSync(target, JSON.stringify(nock.recorder.play(), null, 2) + "\n");
