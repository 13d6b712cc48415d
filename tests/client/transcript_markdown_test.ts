import { transcriptMarkdown } from "preamp/client";
import { assertEquals } from "../assert.ts";
import { transcriptOf } from "../support/log_entries.ts";

Deno.test("a transcript as Markdown has texts as they are, and inputs and results in fences", () => {
  const call = { tool_name: "read", tool_call_id: "call_1", tool_input: { path: "a.md" } };
  const transcript = transcriptOf(
    ["run:start", { status: "running" }],
    ["prompt:submit", { prompt: "Read *a.md*" }],
    ["tool:pre", call],
    ["tool:post", { ...call, result: { success: true, output: "has\n````\na fence" } }],
    ["user:notification", { level: "info", message: "two\nlines" }],
    ["provider:response", {
      usage: { total_tokens: 12, cost_usd: "0.5" },
      response: { content: [{ type: "text", text: "Done." }] },
    }],
  );
  assertEquals(
    transcriptMarkdown(transcript),
    `## You

Read *a.md*

**read** (done)

\`\`\`
{
  "path": "a.md"
}
\`\`\`

\`\`\`\`\`
has
\`\`\`\`
a fence
\`\`\`\`\`

> two
> lines

## Agent

Done.

*1970-01-01T00:00:00.000Z: running, 1 model calls, 12 tokens, $0.5000*
`,
  );
  assertEquals(transcriptMarkdown(transcriptOf()), "");
});
