/**
 * A candidate for a compaction: what it would leave out or shorten, and the resulting size. Changes nothing.
 */
import type { Message } from "../base.ts";
import type { MessageVariants } from "./message_variants.ts";
import { isPinned } from "./request_message.ts";
import {
  type CompactionDecisions,
  entriesOf,
  type Entry,
  type Form,
  type MessageGroup,
  type Transcript,
} from "./transcript.ts";

/** The changes of a possible compaction. */
export class CompactionCandidate implements CompactionDecisions {
  readonly #forms: MessageVariants;
  readonly removed = new Set<MessageGroup>();
  readonly changed = new Map<Entry, Form>();
  /** Tokens of the resulting view. */
  tokens: number;
  /** Messages that would additionally be left out. */
  messages_removed = 0;
  /** Units that stay in the view. */
  units: MessageGroup[];
  readonly first_human: MessageGroup | undefined;
  readonly last_human: MessageGroup | undefined;
  /** The last calls and their results if no human message follows: the model has not read them yet. */
  readonly tail: MessageGroup | undefined;

  /** Creates a candidate without changes. */
  constructor(transcript: Transcript) {
    this.#forms = transcript.forms;
    this.tokens = transcript.tokens;
    this.units = [...transcript.units];
    this.first_human = this.units.find((unit) => unit.kind === "human");
    this.last_human = this.units.findLast((unit) => unit.kind === "human");
    const last = this.units.findLast((unit) => unit.kind !== "other");
    this.tail = last?.kind === "group" ? last : undefined;
  }

  /** The remaining tool results, oldest first, without those of the tail. */
  get results(): Entry[] {
    return this.units.filter((unit) => unit !== this.tail).flatMap((unit) => entriesOf(unit).slice(1));
  }

  /** Tool results that would additionally be truncated. */
  get messages_truncated(): number {
    return this.#newlyShort().filter((entry) => entry.message.role !== "user").length;
  }

  /** User messages that would additionally become stubs. */
  get user_messages_stubbed(): number {
    return this.#newlyShort().filter((entry) => entry.message.role === "user").length;
  }

  #newlyShort(): Entry[] {
    return this.units.flatMap(entriesOf).filter((entry) =>
      this.changed.has(entry) && entry.kept_chars === null
    );
  }

  /** Returns whether a unit may be left out. */
  isRemovable(unit: MessageGroup): boolean {
    return unit.kind !== "human" && unit !== this.tail &&
      !entriesOf(unit).some((entry) => isPinned(entry.message));
  }

  /** Returns the resulting form of an entry. */
  formOf(entry: Entry): Form {
    return this.changed.get(entry) ?? entry;
  }

  /** Returns the resulting tokens of a unit. */
  tokensOf(unit: MessageGroup): number {
    return entriesOf(unit).reduce((sum, entry) => sum + this.formOf(entry).tokens, 0);
  }

  /** Leaves out units. */
  remove(units: ReadonlySet<MessageGroup>): void {
    for (const unit of units) {
      this.tokens -= this.tokensOf(unit);
      this.messages_removed += entriesOf(unit).length;
      this.removed.add(unit);
    }
    if (units.size > 0) this.units = this.units.filter((unit) => !units.has(unit));
  }

  /** Truncates a tool result to this number of characters, if that saves tokens. */
  truncate(entry: Entry, chars: number): void {
    this.#shorten(entry, this.#forms.truncated(entry, chars), chars);
  }

  /** Replaces a user message by a stub, if that saves tokens. */
  stub(entry: Entry): void {
    this.#shorten(entry, this.#forms.stubbed(entry), 0);
  }

  #shorten(entry: Entry, visible: Message | null, kept_chars: number): void {
    if (!visible) return;
    const before = this.formOf(entry);
    const tokens = this.#forms.count(visible);
    if (tokens >= before.tokens) return;
    this.tokens += tokens - before.tokens;
    this.changed.set(entry, { visible: visible, tokens, kept_chars });
  }
}
