/**
 * Vercel AI SDK: compacts the messages of a run by a gateway of refold (`POST /v1/compact`).
 *
 * @example generateText({ model, tools, messages, prepareStep: compactSteps({ above: 100_000 }) })
 */

/**
 * Returns a `prepareStep` that compacts the messages once they are large; the result of the run has the originals.
 *
 * @param {object} options
 * @param {number} options.above tokens of the last call and what came after it, above which messages are compacted
 * @param {string} [options.gateway] address of the gateway
 * @param {string} [options.token] token of the gateway, where it asks for one
 * @returns {(step: {messages: any[], steps: any[], model: any, instructions?: any}) => Promise<{messages?: any[]}>}
 * @throws {Error} the gateway refuses, or cannot be reached
 */
export function compactSteps({ above, gateway = "http://127.0.0.1:8787", token }) {
  return async ({ messages, steps, model, instructions: words }) => {
    const instructions = typeof words === "string" ? words : undefined;
    const fresh = JSON.stringify(steps.length ? messages.at(-1) : messages).length / 4;
    if ((steps.at(-1)?.usage.totalTokens ?? 0) + fresh < above) return {};
    const input = messages.flatMap((message, at) =>
      partsOf(message).map((part, place) => ({ ...item(message.role, part), place: `${at}.${place}` })),
    );
    const answer = await fetch(`${gateway}/v1/compact`, {
      method: "POST",
      headers: { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) },
      body: JSON.stringify({ model: model.modelId ?? model, instructions, input }),
    }).catch((cause) => {
      throw new Error(`no gateway of refold at ${gateway}: start one with "refold serve"`, { cause });
    });
    if (!answer.ok) throw new Error(`refold did not compact (${answer.status}): ${await answer.text()}`);
    return { messages: written((await answer.json()).input, input, messages) };
  };
}

const partsOf = ({ content }) => (typeof content === "string" ? [{ type: "text", text: content }] : content);
const textOf = ({ value }) => (typeof value === "string" ? value : JSON.stringify(value ?? ""));

/** Returns a part as an item of the Responses API; what refold does not shorten is opaque. */
function item(role, part) {
  const { type, toolCallId: call_id, toolName: name } = part;
  if (type === "text") return { role, content: part.text };
  if (type === "tool-call") return { type: "function_call", call_id, name, arguments: JSON.stringify(part.input) };
  if (type === "tool-result") return { type: "function_call_output", call_id, output: textOf(part.output) };
  if (type === "reasoning") return { type, summary: [], encrypted_content: JSON.stringify(part) };
  return { role, content: [{ type: "other", value: part }] };
}

/** Returns the messages that items hold now; what no plan changed is the very same object. */
function written(items, input, messages) {
  const before = new Map(input.map((each) => [each.place, JSON.stringify(each)]));
  const found = new Map();
  for (const each of items) {
    const [at, place] = each.place?.split(".") ?? [Symbol("made by a plan"), 0];
    const message = messages[at] ?? { role: each.role, content: "" };
    const same = JSON.stringify(each) === before.get(each.place);
    const part = same ? partsOf(message)[place] : changed(each, partsOf(message)[place]);
    const entry = found.get(at) ?? { message, parts: [], same: true };
    found.set(at, { message, parts: [...entry.parts, part], same: entry.same && same });
  }
  return [...found.values()].map(({ message, parts, same }) => {
    if (same && parts.length === partsOf(message).length) return message;
    return { ...message, content: typeof message.content === "string" ? parts[0].text : parts };
  });
}

function changed(item, part) {
  if (part.type === "tool-call") return { ...part, input: JSON.parse(item.arguments) };
  if (part.type === "tool-result") return { ...part, output: { type: "text", value: item.output } };
  return typeof item.content === "string" ? { ...part, type: "text", text: item.content } : part;
}
