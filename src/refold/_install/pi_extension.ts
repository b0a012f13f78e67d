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
