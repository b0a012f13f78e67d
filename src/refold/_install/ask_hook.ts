// Asks the hook of refold about each tool's output, and for the digest of what a compaction removed; whatever fails,
// all stays as it is.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

const COMMAND: string[] = [] as string[]; // without the name of the event
const LEAST = 11000; // characters: the hook shortens nothing below

function asked(event: any): Promise<any> {
  return new Promise((resolve) => {
    const words = [...COMMAND.slice(1), event.hook_event_name];
    const child = spawn(COMMAND[0], words, { stdio: ["pipe", "pipe", "ignore"], timeout: 10000 });
    let answer = "";
    child.stdout.on("data", (chunk) => (answer += chunk));
    child.on("error", () => resolve({}));
    child.stdin.on("error", () => resolve({}));
    child.on("close", () => {
      try {
        resolve(JSON.parse(answer || "{}").hookSpecificOutput ?? {});
      } catch {
        resolve({});
      }
    });
    child.stdin.end(JSON.stringify(event));
  });
}

// What is to be shown after a compaction, once it has been made.
async function digest(session: string): Promise<string | undefined> {
  const [agent, folder] = COMMAND.slice(-2);
  if (!existsSync(join(folder, "ready", agent, `${session}.json`))) return;
  const answer = await asked({ hook_event_name: "SessionStart", source: "compact", session_id: session });
  return answer.additionalContext;
}
