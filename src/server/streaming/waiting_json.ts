/**
 * A JSON answer that sends white space while it waits, for hosts that stop a process whose responses are
 * silent.
 */
import type { SystemClock } from "../../process/system_clock.ts";
import { type Answer, API_HEADERS } from "../answers.ts";

const encoder = new TextEncoder();

/** Options of {@link withHeartbeat}. */
export interface HeartbeatOptions {
  /** Milliseconds between two spaces. */
  readonly heartbeat_ms: number;
  readonly clock: SystemClock;
  /** Headers of an answer that began before it was known. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Resolves to an answer that is there within `heartbeat_ms`, unchanged. Otherwise resolves to an answer with
 * status 200 whose body begins with spaces and continues with the body of the late one; its status is lost,
 * and an error ends the connection.
 */
export async function withHeartbeat(
  answer: Promise<Answer>,
  { heartbeat_ms, clock, headers }: HeartbeatOptions,
): Promise<Answer> {
  let late: Answer | undefined;
  const settled = answer.then((found) => {
    late = found;
  });
  settled.catch(() => {}); // thrown below, or to the reader of the body
  const beat = async () => {
    const timer = new AbortController();
    const silence = clock.after(heartbeat_ms, timer.signal).then(() => {}, () => {});
    await Promise.race([settled, silence]);
    timer.abort();
  };
  await beat();
  if (late) return late;
  let begun = false;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (begun && !late) await beat();
      begun = true; // the silence before the first space was as long as allowed
      if (!late) return controller.enqueue(encoder.encode(" "));
      controller.enqueue(await new Response(late.body).bytes());
      controller.close();
    },
  }, { highWaterMark: 0 });
  return { status: 200, headers: { ...API_HEADERS, ...headers }, body };
}
