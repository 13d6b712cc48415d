/** A connection to a guest that a test scripts. */
import { type CallOptions, GuestConnection } from "../../../src/sandbox/guest/guest_connection.ts";
import type { GuestRequest } from "../../../src/sandbox/guest/open_requests.ts";
import type { Notification } from "../../../src/sandbox/protocol.ts";
import { assertRejects } from "../../assert.ts";
import { FakeChannel } from "./fake_channel.ts";

export type Ask = (
  target: string,
  method: string,
  args: readonly unknown[],
  options: Pick<GuestRequest, "signal" | "onPiece">,
) => unknown;

/** A guest over a wire that the test holds. */
export function scripted(ask: Ask = () => undefined) {
  const channel = new FakeChannel();
  const violations: string[] = [];
  const log: string[] = [];
  const effects: Notification[] = [];
  const guest = new GuestConnection(channel, {
    name: "m",
    onLog: (level, text) => log.push(`${level}: ${text}`),
    onViolation: (message) => violations.push(message),
  });
  const host: CallOptions["host"] = {
    view: () => undefined,
    apply: (given) => void effects.push(...given),
    request: ({ target, method, args, ...options }) => Promise.try(ask, target, method, args, options),
  };
  const call = async (options: Partial<CallOptions> = {}) => {
    const answer = guest.call(1, "run", [], { host, max_bytes: 1_000, ...options });
    answer.catch(() => {}); // each test says what it expects of it
    const opened = await channel.next("call", channel.of("call").length - 1);
    return { answer, id: opened.call };
  };
  return { channel, guest, host, call, violations, log, effects };
}

export const codeOf = (error: unknown) => (error as { code?: unknown }).code;

/** Resolves to the code that a call of a dead guest fails with. */
export async function failure(answer: Promise<unknown>): Promise<unknown> {
  return codeOf(await assertRejects(() => answer));
}
