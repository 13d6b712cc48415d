/** A channel whose other end is the test: records what the host sends, and delivers texts of a guest. */
import { within } from "../../../src/process/system_clock.ts";
import type { Channel, ChannelListener, GuestExit, ToGuest } from "../../../src/sandbox/protocol.ts";

/** A frame of the host, of one kind. */
export type Sent<T extends ToGuest["t"]> = Extract<ToGuest, { t: T }>;

/** The wire. */
export class FakeChannel implements Channel {
  readonly exited: Promise<GuestExit>;
  /** Frames of the host, in order. */
  readonly sent: ToGuest[] = [];
  /** Arguments of {@link watch}, in order. */
  readonly watched: number[] = [];
  death: GuestExit | null = null;
  #listener: ChannelListener | null = null;
  readonly #died: (death: GuestExit) => void;
  #waiting: { of: ToGuest["t"]; at: number; found(frame: ToGuest): void } | null = null;

  constructor() {
    const { promise, resolve } = Promise.withResolvers<GuestExit>();
    this.exited = promise;
    this.#died = resolve;
  }

  send(text: string): void {
    this.sent.push(JSON.parse(text));
    const waiting = this.#waiting;
    if (!waiting) return;
    const found = this.of(waiting.of)[waiting.at];
    if (found) waiting.found(found);
  }

  watch(deadline_ms: number): void {
    this.watched.push(deadline_ms);
  }

  within<T>(ms: number, work: Promise<T>): Promise<T> {
    return within(ms, work);
  }

  listen(listener: ChannelListener): void {
    this.#listener = listener;
  }

  kill(death: GuestExit): Promise<void> {
    this.death ??= death;
    this.#died(this.death);
    return Promise.resolve();
  }

  /** Bytes that the next text of the guest may have. */
  get limit(): number {
    return this.#listener!.limit(); // a guest listens from its beginning
  }

  /** The guest says something: a frame, or any text. */
  say(frame: unknown): void {
    this.#listener!.take(typeof frame === "string" ? frame : JSON.stringify(frame));
  }

  /** Frames of one kind. */
  of<T extends ToGuest["t"]>(kind: T): Sent<T>[] {
    return this.sent.filter((frame): frame is Sent<T> => frame.t === kind);
  }

  /** Resolves to the n-th frame of a kind, from 0, when it was sent. */
  async next<T extends ToGuest["t"]>(of: T, at = 0): Promise<Sent<T>> {
    const there = this.of(of)[at];
    if (there) return there;
    const { promise, resolve } = Promise.withResolvers<ToGuest>();
    this.#waiting = { of, at, found: resolve };
    const frame = await promise;
    this.#waiting = null;
    return frame as Sent<T>; // it was looked for among these
  }
}
