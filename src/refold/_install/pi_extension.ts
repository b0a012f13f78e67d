// Written by `refold install pi`; `refold uninstall pi` removes it.
// Asks the hook of refold about each tool's output; whatever fails, the output stays as it is.
import { spawn } from "node:child_process";

const COMMAND: string[] = [] as string[];
const LEAST = 8000; // characters: the hook shortens nothing below

function asked(event: unknown): Promise<any> {
  return new Promise((resolve) => {
    const child = spawn(COMMAND[0], COMMAND.slice(1), { stdio: ["pipe", "pipe", "ignore"], timeout: 10000 });
    let words = "";
    child.stdout.on("data", (chunk) => (words += chunk));
    child.on("error", () => resolve({}));
    child.stdin.on("error", () => resolve({}));
    child.on("close", () => {
      try {
        resolve(JSON.parse(words || "{}"));
      } catch {
        resolve({});
      }
    });
    child.stdin.end(JSON.stringify(event));
  });
}

export default function (pi: any) {
  pi.on("tool_result", async (event: any, ctx: any) => {
    const chars = (event.content ?? []).reduce((sum: number, part: any) => sum + (part.text?.length ?? 0), 0);
    if (chars <= LEAST) return;
    const answer = await asked({
      hook_event_name: "PostToolUse",
      session_id: ctx.sessionManager?.getSessionId?.(),
      tool_name: event.toolName,
      tool_input: event.input,
      tool_use_id: event.toolCallId,
      tool_response: event.content,
    });
    const content = answer.hookSpecificOutput?.updatedToolOutput;
    if (content) return { content };
  });
}
