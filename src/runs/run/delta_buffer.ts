/**
 * Buffers the deltas of streamed content on their way into the log: those of answers, and what a running
 * tool writes. Deltas of a block, or of a stream of a tool, are joined in three cases: to redact a secret
 * that is split over several, to bound the number of entries of a run with very many deltas, and to bound the
 * memory of deltas that arrive faster than they are stored. The joined text stays the same.
 */
import { type DraftEntry, draftEntry } from "../../kernel/host.ts";
import { eventsWith } from "../../sdk/event_table.ts";
import type { SecretSink } from "../ports.ts";

/** The events of deltas → the field with the text. */
export const DELTA_FIELDS: ReadonlyMap<string, string> = new Map([
  ["content_block:delta", "delta"],
  ["tool:output", "text"],
]);

/**
 * Characters of a joined delta while many wait, or once the log has `max_deltas` of them; an entry's other
 * fields take about 100 bytes.
 */
const JOINED_CHARS = 16 * 1024;

const NONE: readonly DraftEntry[] = [];

/** Events after which no delta of the session's answer follows, except for the end of the block itself. */
const ENDS_DELTAS = eventsWith("ends_deltas");

/** A block with buffered text, now or before. */
interface Block {
  text: string;
  /** Deltas of the block that were released. */
  sequence: number;
  /** The last delta received; its other fields are used for the released ones. */
  last: DraftEntry;
}

/** The delta buffer of one run. */
export class DeltaBuffer {
  readonly #secrets: SecretSink;
  readonly #max_deltas: number;
  /** Blocks with buffered text, now or before; null until there is one. */
  #blocks: Map<string, Block> | null = null;
  #count = 0;
  #chars = 0;

  constructor(secrets: SecretSink, max_deltas: number) {
    this.#secrets = secrets;
    this.#max_deltas = max_deltas;
  }

  /** Characters of all deltas. */
  get chars(): number {
    return this.#chars;
  }

  /** Counts a delta that is in the log already. */
  count(delta: DraftEntry): void {
    this.#count++;
    const text = textOf(delta);
    if (typeof text === "string") this.#chars += text.length;
  }

  /**
   * Adds a delta. Returns the delta to record, or null while all of its text is buffered. `crowded`: many
   * wait to be stored.
   */
  add(delta: DraftEntry, crowded: boolean): DraftEntry | null {
    const text = textOf(delta);
    if (typeof text !== "string") { // changed by a hook: no text to join
      return { ...delta, data: this.#secrets.redactValues(delta.data) };
    }
    this.#chars += text.length;
    const joins = crowded || this.#count >= this.#max_deltas;
    if (!joins && this.#secrets.size === 0 && !this.#blocks?.size) {
      this.#count++;
      return delta;
    }
    const key = keyOf(delta);
    const blocks = this.#blocks ??= new Map();
    let block = blocks.get(key);
    if (!block) {
      blocks.set(key, block = { text: "", sequence: Number(delta.data.sequence) - 1, last: delta });
    }
    const whole = block.text + text;
    const ready = whole.length - (this.#secrets.size === 0 ? 0 : this.#secrets.partialSecretLength(whole));
    block.last = delta;
    if (ready === 0 || joins && ready < JOINED_CHARS) {
      block.text = whole;
      return null;
    }
    block.text = whole.slice(ready);
    return this.#deltaOf(block, whole.slice(0, ready));
  }

  /** Returns the buffered text of the blocks that an entry ends, as deltas to record before it. */
  flushBefore(entry: DraftEntry): readonly DraftEntry[] {
    return this.#blocks?.size ? this.#flushEndedBy(entry) : NONE; // perf: called for every entry, so no closure here
  }

  #flushEndedBy({ event, session_id, data }: DraftEntry): readonly DraftEntry[] {
    const of_block = event === "content_block:end";
    const of_call = event === "tool:post" || event === "tool:error";
    if (!of_block && !of_call && !ENDS_DELTAS.has(event)) return NONE;
    return this.#end((_key, { last }) => {
      if (last.session_id !== session_id) return false;
      if (of_call) return last.event === "tool:output" && last.data.tool_call_id === data.tool_call_id;
      return !of_block ||
        last.data.request_id === data.request_id && last.data.block_index === data.block_index;
    });
  }

  /** Returns all buffered text as deltas. */
  flush(): DraftEntry[] {
    return this.#end(() => true);
  }

  #end(ends: (key: string, block: Block) => boolean): DraftEntry[] {
    const released: DraftEntry[] = [];
    for (const [key, block] of this.#blocks ?? []) {
      if (!ends(key, block)) continue;
      this.#blocks?.delete(key);
      if (block.text !== "") released.push(this.#deltaOf(block, block.text));
    }
    return released;
  }

  /** Returns a new delta: the received one may be in the log already. */
  #deltaOf(block: Block, delta: string): DraftEntry {
    this.#count++;
    block.sequence++;
    const { last: { event, session_id, data, ...rest }, sequence } = block;
    const numbered = typeof data.sequence === "number" ? { sequence } : {};
    const joined = { ...data, ...numbered, [DELTA_FIELDS.get(event)!]: delta }; // only deltas are added
    return draftEntry(event, session_id, this.#secrets.redactValues(joined), rest);
  }
}

function textOf({ event, data }: DraftEntry): unknown {
  return data[DELTA_FIELDS.get(event) ?? ""];
}

function keyOf({ event, session_id, data }: DraftEntry): string {
  const [first, second] = event === "tool:output"
    ? [data.tool_call_id, data.stream]
    : [data.request_id, data.block_index];
  return `${event} ${session_id} ${first} ${second}`;
}
