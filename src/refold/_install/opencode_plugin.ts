export const Refold = async ({ client }: any) => ({
  "tool.execute.after": async (input: any, output: any) => {
    if (typeof output?.output !== "string") return;
    if (output.output.length > LEAST) {
      const answer = await asked({
        hook_event_name: "PostToolUse",
        session_id: input.sessionID,
        tool_name: input.tool,
        tool_input: input.args,
        tool_use_id: input.callID,
        tool_response: output.output,
      });
      if (typeof answer.updatedToolOutput === "string") output.output = answer.updatedToolOutput;
    }
    const text = await digest(input.sessionID);
    if (text) output.output += `\n\n${text}`;
  },

  "experimental.session.compacting": async (input: any) => {
    const session = input.sessionID; // its messages are in a database
    const { data } = await client.session.messages({ path: { id: session } });
    if (!data) return;
    await asked({ hook_event_name: "PreCompact", session_id: session, transcript: { messages: data } });
  },

  "chat.message": async (input: any, output: any) => {
    const last = output?.parts?.at(-1);
    const text = last && (await digest(input.sessionID));
    if (text) output.parts.push({ ...last, id: `${last.id}r`, type: "text", text, synthetic: true });
  },
});
