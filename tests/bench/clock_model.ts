/**
 * A model that speaks Chat Completions: streams the marks of `provider_clock.ts` on a clock. Arguments:
 * deltas, interval in ms. Prints its address.
 */
import { answerOnClock, serveAnnounced } from "./announced_server.ts";

const [deltas, interval_ms] = [Number(Deno.args[0] ?? 0), Number(Deno.args[1] ?? 20)];

serveAnnounced(async (request) => {
  await request.arrayBuffer();
  const last = `${chunkOf({}, "stop")}data: [DONE]\n\n`;
  return answerOnClock({ deltas, interval_ms, frameOf: (mark) => chunkOf({ content: mark }), last });
});

function chunkOf(delta: unknown, finish_reason: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason }];
  const usage = finish_reason && { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 };
  const chunk = { id: "c", object: "chat.completion.chunk", created: 1, model: "clock", choices, usage };
  return `data: ${JSON.stringify(chunk)}\n\n`;
}
