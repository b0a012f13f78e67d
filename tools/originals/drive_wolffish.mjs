// Drives Wolffish's compactor: `node drive_wolffish.mjs FILE TYPESCRIPT < job.json > decisions.json`.
// FILE is `src/main/runtime/compactor.ts` of `thewolffish/wolffish-app` (MIT) at commit 56a5158 of 2026-06-09, whose
// mechanics are those of the page that this project follows; TYPESCRIPT is the folder of that npm package, which strips
// the types. Nothing else of it is changed; the model is a function that answers from a script.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";

const [file, typescript] = process.argv.slice(2).map((path) => resolve(path));
const ts = createRequire(import.meta.url)(typescript);
const compiled = ts.transpileModule(readFileSync(file, "utf8"), {
  compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 },
}).outputText;
const { compactOverflow, estimatePayloadTokens } = await import("data:text/javascript," + encodeURIComponent(compiled));
let line = "";
console.log = (text) => (line = text);

const digest = (text) => createHash("sha256").update(text).digest("hex").slice(0, 16);

async function run(messages, budget, options, summary) {
  const copies = messages.map((one) => ({ ...one }));
  let started = null;
  const thalamus = {
    getContextBudget: () => budget,
    summarize: async () => {
      if (summary === null) throw new Error("refused");
      return { text: summary, model: "none" };
    },
  };
  const onStarted = (count, tokens) => (started = [count, tokens]);
  const result = await compactOverflow(thalamus, "", copies, undefined, { ...options, onStarted });
  if (result === null) return null;
  return {
    started,
    targets: result.targets.map((one) => [one.index, one.originalChars, one.compactedChars]),
    texts: result.targets.map((one) => digest(copies[one.index].content)),
    untouched: copies.slice(0, messages.length).filter((one, at) => one.content === messages[at].content).length,
    added: copies.slice(messages.length).map((one) => one.role),
    summary: result.summary !== null,
  };
}

const job = JSON.parse(readFileSync(0, "utf8"));
const histories = [];
for (const { name, digest: of, messages } of job.histories) {
  const tokens = estimatePayloadTokens("", messages);
  const due = [];
  for (const ratio of job.ratios) {
    const budget = Math.ceil(tokens / ratio);
    line = "";
    const made = await run(messages, budget, {}, job.summary);
    due.push([budget, made !== null || line.endsWith("needsCompaction=true")]);
  }
  const runs = [];
  for (const share of job.shares) {
    for (const summary of [job.summary, null]) {
      const excess = Math.floor(tokens * share);
      const made = await run(messages, 2 * (tokens - excess), { force: true }, summary);
      runs.push({ excess, ...(made ?? { targets: [] }), summary: made?.summary ?? false });
    }
  }
  histories.push({ name, digest: of, tokens, due, runs });
}
process.stdout.write(JSON.stringify({ settings: [], histories }));
