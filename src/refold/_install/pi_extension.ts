export default function (pi: any) {
  const id = (ctx: any) => String(ctx.sessionManager?.getSessionId?.() ?? "");

  pi.on("tool_result", async (event: any, ctx: any) => {
    const chars = (event.content ?? []).reduce((sum: number, part: any) => sum + (part.text?.length ?? 0), 0);
    const text = await digest(id(ctx));
    const more = text ? [{ type: "text", text }] : [];
    let content: any;
    if (chars > LEAST) {
      const answer = await asked({
        hook_event_name: "PostToolUse",
        session_id: id(ctx),
        tool_name: event.toolName,
        tool_input: event.input,
        tool_use_id: event.toolCallId,
        tool_response: event.content,
      });
      content = answer.updatedToolOutput;
    }
    if (content || text) return { content: [...(content ?? event.content ?? []), ...more] };
  });

  pi.on("session_before_compact", async (_event: any, ctx: any) => {
    const file = ctx.sessionManager?.getSessionFile?.();
    if (!file) return; // a session that is not stored
    await asked({ hook_event_name: "PreCompact", session_id: id(ctx), transcript_path: file });
  });

  pi.on("session_compact", async (_event: any, ctx: any) => {
    const text = await digest(id(ctx));
    if (text) pi.sendMessage({ customType: "refold", content: text, display: false }); // starts no turn
  });

  pi.on("before_agent_start", async (_event: any, ctx: any) => {
    const text = await digest(id(ctx)); // where it was not ready then
    if (text) return { message: { customType: "refold", content: text, display: false } };
  });
}
