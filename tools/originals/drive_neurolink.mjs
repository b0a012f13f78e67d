// Drives NeuroLink's compaction modules: `node drive_neurolink.mjs PACKAGE < jobs.json > decisions.json`.
// PACKAGE is the unpacked npm package. Its modules are loaded as they are, apart from the settings below, each of which
// sets a newer version back to what its documentation page says, and from modules that reach outside (log, telemetry,
// model registry, the summarizing call), which are replaced by stand-ins.
import { readFileSync } from "node:fs";
import { register } from "node:module";
import { pathToFileURL } from "node:url";
import { resolve } from "node:path";

const SETTINGS = {
  "utils/tokenEstimation.js": [
    ["the margin of 1.15 multiplies; newer: an additive 5 %", "providerAdjusted \\+ \\w+", "providerAdjusted * TOKEN_SAFETY_MARGIN"],
  ],
  "context/contextCompactor.js": [
    ["the newest 30 % of the messages are kept; newer: 30 % of the target's tokens", "targetTokens,(?=\\s*\\}\\), 120)", ""],
    ["half of the messages are removed, in one pass, and lists of 4 or fewer are left; newer: as many as are needed",
      "currentTokens: \\w+,\\s*targetTokens: \\w+,", ""],
  ],
  "context/stages/structuredSummarizer.js": [
    ["the summary is a system message; newer: a user's", 'role: "user"', 'role: "system"'],
    ["the summary's heading has no brackets", "\\[(Previous conversation summary)\\]", "$1"],
  ],
  "context/stages/slidingWindowTruncator.js": [
    ["the marker is a system message; newer: a user's", 'role: "user"', 'role: "system"'],
    ["nothing is removed where half is less than a pair; newer: 95 % then", "\\* 0\\.95\\)", "* 0)"],
  ],
  "context/stages/fileReadDeduplicator.js": [
    ["the path of a read may stand in quotes; newer: in backticks as well", "'\"`", "'\""],
  ],
};
const STAND_INS = {
  "observability/index.js": `const span = { durationMs: 0 };
    export const SpanSerializer = { createSpan: () => span, updateAttributes: () => span, endSpan: () => span };
    export const SpanType = {}, SpanStatus = {};
    export const getMetricsAggregator = () => ({ recordSpan() {} });`,
  "utils/logger.js": `const quiet = () => {};
    const info = (line, data) => line.startsWith("[Compaction] Stage") && globalThis.sizes.push(data.tokensAfter);
    export const logger = { info, warn: quiet, error: quiet, debug: quiet };`,
  "core/dynamicModels.js": `export class DynamicModelProvider {
    static getInstance() { throw new Error("no registry here"); } }`,
  "utils/conversationMemory.js": `export async function generateSummary(messages, config, prefix, previous) {
    globalThis.asked.push({ messages: messages.map((one) => one.id), previous: Boolean(previous) });
    return globalThis.summary; }`,
};

const root = pathToFileURL(resolve(process.argv[2], "dist") + "/").href;
const hooks = `
const root = ${JSON.stringify(root)}, settings = ${JSON.stringify(SETTINGS)}, standIns = ${JSON.stringify(STAND_INS)};
export async function load(url, context, next) {
  const name = url.startsWith(root) ? url.slice(root.length) : "";
  if (standIns[name]) return { format: "module", source: standIns[name], shortCircuit: true };
  const loaded = await next(url, context);
  if (!settings[name]) return loaded;
  let source = String(loaded.source);
  for (const [why, from, to] of settings[name]) {
    if (!RegExp(from).test(source)) throw new Error(name + ": cannot set back: " + why);
    source = source.replace(RegExp(from, "g"), to);
  }
  return { ...loaded, source };
}`;
register("data:text/javascript," + encodeURIComponent(hooks));

const { ContextCompactor } = await import(root + "context/contextCompactor.js");
const { checkContextBudget } = await import(root + "context/budgetChecker.js");
const { summarizeMessages } = await import(root + "context/stages/structuredSummarizer.js");
const { pruneToolOutputs } = await import(root + "context/stages/toolOutputPruner.js");
const { deduplicateFileReads } = await import(root + "context/stages/fileReadDeduplicator.js");
const { truncateWithSlidingWindow } = await import(root + "context/stages/slidingWindowTruncator.js");
const { repairToolPairs } = await import(root + "context/toolPairRepair.js");
const { estimateMessagesTokens } = await import(root + "utils/tokenEstimation.js");

const MARKS = {
  "[Tool result cleared]": "C",
  "[Earlier conversation history was truncated to fit within context limits]": "M",
  "[Tool result unavailable - conversation was compacted]": "r",
};

// One letter for what stands at a place of the list: K untouched, C cleared, D a reference, S a summary, M the marker
// (s and m those of the compaction before), r and c the marked halves of a repair, X anything else; untouched and
// changed messages with their ids.
function placed(messages, originals) {
  return messages.map((one) => {
    const before = originals.get(one.id);
    if (before && before.content === one.content) {
      return one.metadata?.isSummary ? "s" : one.isTruncationMarker ? "m" : "K" + one.id;
    }
    if (/^\[File .* - refer to latest read below\]$/s.test(one.content)) return "D" + one.id;
    if (/^\[Tool call for .* - conversation was compacted\]$/.test(one.content)) return "c";
    if (one.metadata?.isSummary) return "S";
    const mark = MARKS[one.content] ?? "X";
    return before ? mark + one.id : mark;
  });
}

async function compacted(messages, target, summary) {
  globalThis.summary = summary;
  globalThis.asked = [];
  globalThis.sizes = [];
  const result = await new ContextCompactor().compact(messages, target);
  const originals = new Map(messages.map((one) => [one.id, one]));
  const repaired = repairToolPairs(result.messages);
  return {
    decisions: {
      target,
      stages: result.stagesUsed,
      sizes: globalThis.sizes,
      before: result.tokensBefore,
      after: result.tokensAfter,
      view: placed(result.messages, originals).join(" "),
      summarized: globalThis.asked.map((one) => [one.messages.length, one.previous]),
      repair: [repaired.orphanedCallsFixed, repaired.orphanedResultsFixed],
    },
    messages: result.messages,
  };
}

async function decided(job) {
  const tokens = estimateMessagesTokens(job.messages);
  const estimates = Object.fromEntries(job.providers.map((one) => [one, estimateMessagesTokens(job.messages, one)]));
  const due = job.ratios.map((ratio) => {
    const available = Math.ceil(tokens / ratio);
    const check = checkContextBudget({
      provider: "openai", model: job.model, maxTokens: job.window - available, conversationMessages: job.messages,
    });
    if (check.availableInputTokens !== available) throw new Error(`${job.name}: another window`);
    return [available, check.estimatedInputTokens, check.shouldCompact, check.withinBudget];
  });
  const { breakdown, estimatedInputTokens } = checkContextBudget({
    provider: "openai", model: job.model, conversationMessages: job.messages, ...job.parts,
  });
  const parts = [
    breakdown.systemPrompt, breakdown.conversationHistory, breakdown.currentPrompt, breakdown.toolDefinitions,
    breakdown.fileAttachments, estimatedInputTokens,
  ];
  const { orphanedCallsFixed, orphanedResultsFixed, messages } = repairToolPairs(job.messages);
  const originals = new Map(job.messages.map((one) => [one.id, one]));
  const runs = [];
  for (const share of job.shares) {
    for (const summary of [job.summary, null]) {
      const first = await compacted(job.messages, Math.floor(tokens * share), summary);
      const run = { share, summary: Boolean(summary), ...first.decisions };
      if (job.more.length) {
        const longer = [...first.messages, ...job.more];
        run.second = (await compacted(longer, Math.floor(estimateMessagesTokens(longer) * share), summary)).decisions;
      }
      runs.push(run);
    }
  }
  const marked = (list, messages, mark) =>
    placed(list, new Map(messages.map((one) => [one.id, one]))).filter((one) => one.startsWith(mark)).join(" ");
  return {
    name: job.name, digest: job.digest, tokens, estimates, due, parts, runs,
    cleared: marked(pruneToolOutputs(job.messages).messages, job.messages, "C"),
    references: marked(deduplicateFileReads(job.messages).messages, job.messages, "D"),
    named: marked(deduplicateFileReads(job.named).messages, job.named, "D"),
    repair: [orphanedCallsFixed, orphanedResultsFixed, placed(messages, originals).join(" ")],
  };
}

// How many messages of a list of each length stay from a summary, and how many the window removes.
async function formulas(longest) {
  const kept = [], removed = [];
  for (let count = 0; count <= longest; count++) {
    const chat = Array.from({ length: count }, (_, at) => ({ id: `${at}`, role: at % 2 ? "assistant" : "user", content: "x" }));
    globalThis.summary = "y";
    globalThis.asked = [];
    const { messages } = await summarizeMessages(chat, { provider: "p", model: "m" });
    kept.push(globalThis.asked.length ? messages.length - 1 : count);
    removed.push(truncateWithSlidingWindow(chat, {}).messagesRemoved);
  }
  return { kept, removed };
}

const histories = [];
for (const job of JSON.parse(readFileSync(0, "utf8"))) histories.push(await decided(job));
process.stdout.write(JSON.stringify({
  settings: Object.values(SETTINGS).flat().map(([why]) => why), formulas: await formulas(60), histories,
}));
