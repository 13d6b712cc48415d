/**
 * The pieces of answers on their way into the log. Two things may join pieces of one block: a secret that is split over them
 * is taken out whole (threats.md T21), and a run that has released very many tells larger ones, because ceilings do not count them
 * and a log that is open must not grow without end. What a reader joins is the same text, in a log without gaps.
 */
import { type DraftEntry, draftEntry } from "../../kernel/host.ts";
import { eventsWith } from "../../sdk/events.ts";
import type { SecretSink } from "../ports.ts";

/** The event of a delta. */
export const DELTA = "content_block:delta";

/** Characters of the pieces that are released once there were `max_deltas` of them: 100 bytes of envelope are little beside it. */
const JOINED_CHARS = 16 * 1024;

const NONE: readonly DraftEntry[] = [];

/** Events after which no delta of the session's answer follows, except for the end of the block itself. */
const ENDS_DELTAS = eventsWith("ends_deltas");

/** A block of which something is held back, or was. */
interface Block {
  held: string;
  /** Pieces that were released. */
  sequence: number;
  /** The last delta as it came: what it says of itself holds for what is still to be released. */
  last: DraftEntry;
}

/** Pieces of one run. */
export class DeltaBuffer {
  readonly #secrets: SecretSink;
  readonly #max_deltas: number;
  readonly #blocks = new Map<string, Block>();
  #count = 0;
  #chars = 0;

  constructor(secrets: SecretSink, max_deltas: number) {
    this.#secrets = secrets;
    this.#max_deltas = max_deltas;
  }

  /** Characters of all pieces. */
  get chars(): number {
    return this.#chars;
  }

  /** Counts a delta that is in the log already. */
  count(delta: DraftEntry): void {
    this.#count++;
    this.#chars += textOf(delta).length;
  }

  /** Returns the delta as it is to be released, or null while all of it is held back. */
  add(delta: DraftEntry): DraftEntry | null {
    if (typeof delta.data.delta !== "string") { // what a hook made of it: nothing to join
      return { ...delta, data: this.#secrets.redactValues(delta.data) };
    }
    const text = delta.data.delta;
    this.#chars += text.length;
    const joins = this.#count >= this.#max_deltas;
    if (!joins && this.#secrets.size === 0 && this.#blocks.size === 0) {
      this.#count++;
      return delta;
    }
    const key = keyOf(delta);
    let block = this.#blocks.get(key);
    if (!block) {
      this.#blocks.set(key, block = { held: "", sequence: Number(delta.data.sequence) - 1, last: delta });
    }
    const whole = block.held + text;
    const ready = whole.length - (this.#secrets.size === 0 ? 0 : this.#secrets.held(whole));
    block.last = delta;
    if (ready === 0 || joins && ready < JOINED_CHARS) {
      block.held = whole;
      return null;
    }
    block.held = whole.slice(ready);
    return this.#deltaOf(block, whole.slice(0, ready));
  }

  /** Returns what is held back of the blocks that an entry ends, to be released before it. */
  flushBefore(entry: DraftEntry): readonly DraftEntry[] {
    if (this.#blocks.size === 0) return NONE; // asked before every entry: one empty list for all
    const own = entry.event === "content_block:end" ? keyOf(entry) : null;
    if (own === null && !ENDS_DELTAS.has(entry.event)) return NONE;
    return this.#end((key, { last }) => own === null ? last.session_id === entry.session_id : key === own);
  }

  /** Returns all that is held back: nothing follows. */
  flush(): DraftEntry[] {
    return this.#end(() => true);
  }

  #end(ends: (key: string, block: Block) => boolean): DraftEntry[] {
    const released: DraftEntry[] = [];
    for (const [key, block] of this.#blocks) {
      if (!ends(key, block)) continue;
      this.#blocks.delete(key);
      if (block.held !== "") released.push(this.#deltaOf(block, block.held));
    }
    return released;
  }

  /** A delta of its own: what came may be in the log already. */
  #deltaOf(block: Block, delta: string): DraftEntry {
    this.#count++;
    block.sequence++;
    const { last: { event, session_id, data, ...rest }, sequence } = block;
    const numbered = typeof data.sequence === "number" ? { sequence } : {};
    return draftEntry(event, session_id, this.#secrets.redactValues({ ...data, ...numbered, delta }), rest);
  }
}

function textOf({ data: { delta } }: DraftEntry): string {
  return typeof delta === "string" ? delta : "";
}

function keyOf({ session_id, data: { request_id, block_index } }: DraftEntry): string {
  return `${session_id} ${request_id} ${block_index}`;
}
