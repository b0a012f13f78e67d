export const Refold = async () => ({
  "tool.execute.after": async (input: any, output: any) => {
    if (typeof output?.output !== "string" || output.output.length <= LEAST) return;
    const answer = await asked({
      hook_event_name: "PostToolUse",
      session_id: input.sessionID,
      tool_name: input.tool,
      tool_input: input.args,
      tool_use_id: input.callID,
      tool_response: output.output,
    });
    const text = answer.hookSpecificOutput?.updatedToolOutput;
    if (typeof text === "string") output.output = text;
  },
});
