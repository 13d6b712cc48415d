/** Calls that a person has allowed for longer than one answer: until they leave, or always in the folder. */
import { proposeRule, readAllowedCalls } from "../../app/allowed_calls.ts";
import type { Approval } from "../../runs/types.ts";
import { timestamp } from "../../sdk/timestamp.ts";
import { type TrustRecord, TrustRecords } from "../folder/trust_records.ts";

/** How long a rule holds. */
export type Scope = "conversation" | "folder";

/** A rule, such as `bash:git log *`. */
export interface AllowedRule {
  readonly rule: string;
  readonly scope: Scope;
}

/** The rules of one conversation; those of its folder are kept with what the person trusts there. */
export class AllowedCalls {
  readonly #records: TrustRecords;
  /** Path of the folder without links; null: nothing is kept. */
  readonly #folder: string | null;
  #rules: readonly AllowedRule[];
  #allowedBy: ReturnType<typeof readAllowedCalls> = () => undefined;

  private constructor(records: TrustRecords, folder: string | null, rules: readonly AllowedRule[]) {
    this.#records = records;
    this.#folder = folder;
    this.#rules = rules;
    this.#compile();
  }

  /**
   * @param home `$PREAMP_HOME`; null: rules last until the person leaves.
   * @param workspace The folder; null: one that does not last.
   */
  static async open(home: URL | null, workspace: URL | null): Promise<AllowedCalls> {
    const records = new TrustRecords(home);
    const path = workspace && records.lasting ? await Deno.realPath(workspace).catch(() => null) : null;
    const kept = path === null ? [] : (await records.read(path)).allowed ?? [];
    const rules = kept.filter(isRule).map((rule) => ({ rule, scope: "folder" as const }));
    return new AllowedCalls(records, path, rules);
  }

  /** The rules that hold. */
  get rules(): readonly AllowedRule[] {
    return this.#rules;
  }

  /** Whether rules of the folder can be kept. */
  get keeps_folder(): boolean {
    return this.#folder !== null;
  }

  /** Returns the rules that allow what an approval asks; undefined: none does. */
  allowedBy(approval: Approval): string | undefined {
    return approval.limit ? undefined : this.#allowedBy(approval);
  }

  /** Returns a rule that would allow calls like this one; null: none can say it. */
  proposes(approval: Approval): string | null {
    return approval.limit ? null : proposeRule(approval);
  }

  /** Adds a rule. @throws {UsageError} when it cannot be kept. */
  async add(rule: string, scope: Scope): Promise<void> {
    this.#rules = [...this.#rules.filter((known) => known.rule !== rule), { rule, scope }];
    this.#compile();
    if (scope === "folder") await this.#keep();
  }

  /** Removes a rule. @throws {UsageError} when that cannot be kept. */
  async remove({ rule, scope }: AllowedRule): Promise<void> {
    this.#rules = this.#rules.filter((known) => known.rule !== rule);
    this.#compile();
    if (scope === "folder") await this.#keep();
  }

  #compile(): void {
    this.#allowedBy = readAllowedCalls(this.#rules.map(({ rule }) => rule));
  }

  async #keep(): Promise<void> {
    if (this.#folder === null) return;
    const record = await this.#records.read(this.#folder); // another process may have decided since
    const allowed = this.#rules.filter(({ scope }) => scope === "folder").map(({ rule }) => rule);
    const changed: TrustRecord = { ...record, decided_at: timestamp(Date.now()), allowed };
    await this.#records.write(changed);
  }
}

/** Returns whether a text is a rule: a record may be written by hand. */
function isRule(text: string): boolean {
  try {
    readAllowedCalls([text]);
    return true;
  } catch {
    return false;
  }
}

/** Returns how long a rule holds, in words. */
export function scopeText(scope: Scope): string {
  return scope === "folder" ? "always in this folder" : "until you leave";
}
