/**
 * A minimal server of live streams: writes the marks of `provider_clock.ts` as server-sent events, one write
 * for each, and nothing else. Arguments: deltas, interval in ms. Prints its address.
 */
import { answerOnClock, serveAnnounced } from "./announced_server.ts";

const [deltas, interval_ms] = [Number(Deno.args[0] ?? 0), Number(Deno.args[1] ?? 20)];

serveAnnounced(async (request) => {
  await request.arrayBuffer();
  const frameOf = (mark: string, index: number) =>
    `id: ${index + 1}\nevent: content_block:delta\ndata: {"delta":"${mark}"}\n\n`;
  return answerOnClock({ deltas, interval_ms, frameOf });
});
