/**
 * Narrows the tools of a turn to those that its skills allow. The names are those of the tool at hand, and
 * those that skills of other programs use.
 */
import { compileGlob, type Coordinator, isObject } from "preamp/base";

/** Names of other programs' tools, in lower case → ours. Any other name is a tool of its own. */
const OTHER_NAMES: Readonly<Record<string, readonly string[]>> = {
  agent: ["task", "delegate"],
  bash: ["bash", "job"],
  bashoutput: ["job"],
  delegate: ["task", "delegate"],
  edit_file: ["edit", "apply_patch"],
  edit: ["edit", "apply_patch"],
  killshell: ["job"],
  ls: ["list"],
  multiedit: ["edit", "apply_patch"],
  read_file: ["read"],
  todowrite: ["todo"],
  webfetch: ["web_fetch"],
  websearch: ["web_search"],
  write_file: ["write"],
};

/** Key in `session_state`, so that a run that another process continues is as narrow. */
const STATE = "tool-skills";

/** A skill that was loaded in this turn, and its `allowed-tools`. */
interface Narrowing {
  readonly skill: string;
  readonly tools: readonly string[];
}

/** The skills of a turn that narrow its tools. A tool must be allowed by each of them. */
export class AllowedTools {
  readonly #session: Pick<Coordinator, "session_state">;

  constructor(session: Pick<Coordinator, "session_state">) {
    this.#session = session;
  }

  /** Ends the narrowing of the turn before. */
  beginTurn(): void {
    if (this.#narrowings.length > 0) delete this.#session.session_state[STATE];
  }

  /** Narrows the rest of the turn to the tools of a skill. */
  narrow({ name: skill, allowed_tools }: { name: string; allowed_tools: readonly string[] | null }): void {
    if (allowed_tools === null || this.#narrowings.some((one) => one.skill === skill)) return;
    const tools = allowed_tools.map((entry) => entry.replace(/\(.*$/s, ""));
    this.#session.session_state[STATE] = [...this.#narrowings, { skill, tools }];
  }

  /** Returns why a tool must not be called; null: it may. */
  refusal(tool: string): string | null {
    const narrow = this.#narrowings.find(({ tools }) => !tools.some((entry) => covers(entry, tool)));
    if (narrow === undefined) return null;
    const tools = narrow.tools.length === 0 ? "no tool" : `only ${narrow.tools.join(", ")}`;
    return `the skill ${narrow.skill} allows ${tools} until this answer ends (allowed-tools)`;
  }

  get #narrowings(): Narrowing[] {
    const state = this.#session.session_state[STATE];
    return Array.isArray(state) ? state.filter(isNarrowing) : [];
  }
}

function isNarrowing(value: unknown): value is Narrowing {
  return isObject(value) && typeof value.skill === "string" && Array.isArray(value.tools);
}

/** Returns whether an entry of `allowed-tools` means a tool: `Read`, `mcp__github__*`, `Bash(git log:*)`. */
function covers(entry: string, tool: string): boolean {
  const name = entry.toLowerCase().replace(/^mcp__/, "");
  const known = Object.hasOwn(OTHER_NAMES, name) ? OTHER_NAMES[name]! : [name];
  return known.some((pattern) => compileGlob(pattern)(tool.toLowerCase()));
}
