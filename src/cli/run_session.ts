/** The stored sessions and runs of the terminal: the one that `preamp run` continues, and lists of them. */
import { createRuntime } from "../app/runtime.ts";
import type { Runtime } from "../app/types.ts";
import type { Run, SessionObject } from "../runs/types.ts";
import { hasCode } from "../sdk/errors.ts";
import { type Arguments, type Flag, UsageError } from "./arguments.ts";
import { TERMINAL } from "./terminal_caller.ts";
import { type OpenedStore, openSettingsStore } from "../settings/settings.ts";
import { reportedSettings, type Settings } from "./settings.ts";
import { shellWord, styleOf, tableText, writeLabelled } from "./terminal/format.ts";
import type { Io, Output } from "./terminal/io.ts";

/** Opens the store: with `--session` it lasts, so that the conversation can be continued. */
export async function openRunStore(args: Arguments, settings: Settings): Promise<OpenedStore> {
  const id = args.value("session");
  if (id !== undefined && settings.store === "memory") {
    throw new UsageError(
      `Cannot continue session ${JSON.stringify(id)}: the store is memory, which ends with its process; ` +
        "leave out --store memory",
    );
  }
  return await openSettingsStore(settings, id !== undefined);
}

/**
 * Returns the id of the session to continue, which is named by its id or its name; undefined for a new one.
 * @throws {UsageError} for a session that is not stored, and for `last` when there is no session.
 */
export async function sessionOf(text: string | undefined, runtime: Runtime): Promise<string | undefined> {
  if (text === undefined || text === "new") return undefined;
  if (text === "last") {
    const [last] = await storedSessions(runtime);
    if (last) return last.id;
    throw new UsageError(
      "Cannot continue the last session: no session is stored; begin one with --session new",
    );
  }
  const by_id = await runtime.runs.sessions.get(TERMINAL, text).catch((error) => {
    if (!hasCode(error, "not_found")) throw error;
  });
  const found = by_id ?? (await storedSessions(runtime)).find(({ metadata }) => metadata.name === text);
  if (found) return found.id;
  throw new UsageError(
    `Cannot continue session ${JSON.stringify(text.slice(0, 80))}: there is no such session; ` +
      "preamp sessions lists them, --session new begins one",
  );
}

/** Resolves to the sessions of the terminal without those of sub-agents, the last used one first. */
export async function storedSessions({ runs }: Pick<Runtime, "runs">): Promise<SessionObject[]> {
  const found: SessionObject[] = [];
  let cursor: string | undefined;
  do {
    const page = await runs.sessions.list(TERMINAL, cursor === undefined ? {} : { cursor });
    // a fork has a parent too
    found.push(...page.data.filter(({ parent_id, metadata }) => parent_id === null || metadata.forked_at));
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  return found.sort((a, b) => b.last_activity.localeCompare(a.last_activity));
}

/** Calls `use` with a runtime on the lasting store of the settings, which it only reads, and closes both. */
export async function withStoredRuns<T>(
  args: Arguments,
  io: Io,
  use: (runtime: Runtime) => Promise<T>,
): Promise<T> {
  const settings = await reportedSettings(args, io);
  const { store, warning } = await openSettingsStore(settings, true);
  if (warning !== null) writeLabelled(io.err, "warning", warning);
  await using runtime = createRuntime({
    ...(store ? { store } : {}),
    recovers: false,
    policy: settings.policy,
  });
  return await use(runtime);
}

/** `--last N`. */
export const LAST_FLAG: Flag = { name: "last", value: "N", help: "list at most the newest N, default 20" };

/** Returns the number of {@link LAST_FLAG}. @throws {UsageError} if it is no number above 0. */
export function lastOf(args: Arguments): number {
  const text = args.value("last") ?? "20";
  if (/^[1-9]\d{0,6}$/.test(text)) return Number(text);
  throw new UsageError(`Cannot use --last: must be a number above 0, but is ${JSON.stringify(text)}`);
}

/** Returns a list with its headings. */
export function listText(rows: readonly (readonly string[])[], output: Output): string {
  const { dim } = styleOf(output);
  return tableText(rows, "", (cell, _column, row) => row === 0 ? dim(cell) : cell);
}

/** Returns a time as a list shows it. */
export function timeText(iso: string): string {
  return iso.slice(0, 16).replace("T", " ");
}

/** Returns the command that continues the session of a run. A URL of a store may have a password: `…`. */
export function continuation(args: Arguments, { session_id }: Pick<Run, "session_id">): string {
  return ["preamp run", ...storeFlags(args), "--session", session_id, '"…"'].join(" ");
}

/** Returns the flags that name the store of a command. */
export function storeFlags(args: Arguments): string[] {
  return ["config", "store"].flatMap((name) => {
    const value = args.value(name);
    return value === undefined ? [] : [`--${name}`, value.includes("://") ? "…" : shellWord(value)];
  });
}
