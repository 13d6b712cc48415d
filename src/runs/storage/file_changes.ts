/**
 * What a run has kept of the files that its tools changed, and putting it back. Each change is a record:
 * path, bytes from before, and what the module that made it may write. The bytes are content, so nothing in
 * them is redacted; they expire like the log, and are deleted with the run or its session.
 */
import { PreampError } from "../../sdk/errors.ts";
import type { JsonObject } from "../../sdk/json.ts";
import { isWithinFolder } from "../../sdk/paths.ts";
import type { GrantedPermissions } from "../../sdk/types.ts";
import { allRecords, type Change, type Store } from "../../store/store.ts";
import type { RunsDeps } from "../ports.ts";
import { DAY_MS } from "../run/run_records.ts";
import type { RunFacts } from "../run/run_options.ts";
import type { FileChange, UndoReport } from "../types.ts";

const KIND = "file_change";
/** Digits of a change's number in its key, so that keys sort by number. */
const DIGITS = 9;
/** Last characters of a path that lists have; an index of Postgres takes no entry of more than 2 KB. */
const MAX_LISTED_CHARS = 500;

/** A stored change; `refused`: why its bytes were not kept. */
interface StoredChange extends FileChange {
  refused?: string;
}

/** Keeps the files of one run. */
export class FileChanges {
  readonly #run: RunFacts;
  /** Number of changes, and bytes that are kept, those before a crash included. */
  #kept: Promise<{ count: number; bytes: number }> | null = null;

  constructor(run: RunFacts) {
    this.#run = run;
  }

  /**
   * Stores a change that a module is about to make. Resolves to null, or to why it cannot be undone.
   * @throws {PreampError} `request_invalid` for no change, or a path outside of `write`.
   */
  async keep(given: JsonObject, write: GrantedPermissions["write"]): Promise<string | null> {
    const { id, session_id, store, limits: { max_undo_bytes, retention_days }, options } = this.#run;
    const { files, clock } = options.deps;
    if (!files) return null;
    const given_change = changeOf(given, write);
    const { path, before } = given_change;
    const state = await files.stateOf(path);
    const kept = await (this.#kept ??= this.#keptBefore());
    const bytes = before === null ? 0 : Math.ceil(before.length / 4) * 3;
    const refused = kept.bytes + bytes > max_undo_bytes
      ? `a run keeps at most ${max_undo_bytes} bytes of files (limits.max_undo_bytes)`
      : null;
    const change: StoredChange = { ...given_change, ...state, write };
    if (refused !== null) Object.assign(change, { before: null, refused });
    const number = ++kept.count;
    if (refused === null) kept.bytes += bytes;
    const put = {
      kind: KIND,
      key: `${id}/${String(number).padStart(DIGITS, "0")}`,
      namespace: options.caller.namespace,
      value: change as unknown as JsonObject,
      index: {
        run_id: id,
        session_id,
        bytes: String(refused === null ? bytes : 0),
        path: shownPath(change).slice(-MAX_LISTED_CHARS), // for lists, which do not read the bytes
      },
      expires_ms: clock.now() + retention_days * DAY_MS,
    };
    await store.commit([{ put }]);
    return refused;
  }

  async #keptBefore(): Promise<{ count: number; bytes: number }> {
    const { id, options: { caller, deps, orphan } } = this.#run;
    const kept = { count: 0, bytes: 0 };
    if (!orphan) return kept;
    for await (const { index } of changesOf(deps.store, caller.namespace, id)) {
      kept.count++;
      kept.bytes += Number(index?.bytes);
    }
    return kept;
  }
}

/** Returns a module's change. @throws {PreampError} `request_invalid` */
function changeOf(
  { path, before, after_sha256, after_link = null }: JsonObject,
  write: GrantedPermissions["write"],
): Pick<FileChange, "path" | "before" | "after_sha256" | "after_link"> {
  const isText = (value: unknown): value is string | null => value === null || typeof value === "string";
  if (typeof path !== "string" || !isText(before) || !isText(after_sha256) || !isText(after_link)) {
    throw new PreampError(
      "request_invalid",
      "Cannot keep a file: must be { path, before: base64 or null, after_sha256: hex or null, " +
        "after_link?: text or null }",
    );
  }
  if (!mayWrite(write, path)) {
    throw new PreampError("request_invalid", "Cannot keep a file: the plan does not let the module write it");
  }
  return { path, before, after_sha256, after_link };
}

function mayWrite(write: GrantedPermissions["write"], path: string): boolean {
  return write === true || Array.isArray(write) && write.some((folder) => isWithinFolder(folder, path));
}

function changesOf(store: Store, namespace: string, run_id: string) {
  return allRecords(store, KIND, { namespace, where: { run_id } });
}

/**
 * Yields the runs with changes that are not undone, in the order of their newest changes, newest first: the
 * id, and the paths of the files. `session_id`: only runs of this session.
 */
export async function* changedFilesOfRuns(
  store: Store,
  namespace: string,
  session_id?: string,
): AsyncGenerator<{ run_id: string; paths: string[] }> {
  const seen = new Set<string>();
  const where = session_id === undefined ? {} : { session_id };
  for await (const { index: { run_id } = {} } of allRecords(store, KIND, { namespace, where })) {
    if (run_id === undefined || seen.has(run_id)) continue;
    seen.add(run_id);
    const paths = new Set<string>();
    for await (const { index } of changesOf(store, namespace, run_id)) paths.add(index?.path ?? "");
    yield { run_id, paths: [...paths].reverse() };
  }
}

/** Resolves to the changes that delete what a run has kept. */
export async function fileChangeDeletions(
  store: Store,
  namespace: string,
  run_id: string,
): Promise<Change[]> {
  const changes: Change[] = [];
  for await (const { key } of changesOf(store, namespace, run_id)) {
    changes.push({ delete: { kind: KIND, key } });
  }
  return changes;
}

/**
 * Puts back the files that an ended run has changed, the last change first. A file that is no longer as the
 * run left it stays as it is, and so do its earlier changes. What is put back is forgotten, the rest can be
 * tried again.
 */
export async function undoFileChanges(
  { store, files }: RunsDeps,
  namespace: string,
  run_id: string,
): Promise<UndoReport> {
  const undone = new Map<string, UndoReport["undone"][number]>();
  const failed = new Map<string, UndoReport["not_undone"][number]>();
  const keys: string[] = [];
  for await (const { key } of changesOf(store, namespace, run_id)) keys.push(key);
  for (const key of keys.sort().reverse()) {
    const change = (await store.get(KIND, key))?.value as StoredChange | undefined;
    if (!change || failed.has(change.path)) continue;
    const path = shownPath(change);
    const reason = change.refused ?? await files?.putBack(change) ?? null;
    if (reason !== null) {
      failed.set(change.path, { path, reason });
      continue;
    }
    await store.commit([{ delete: { kind: KIND, key } }]);
    undone.set(change.path, { path, action: change.before === null ? "deleted" : "restored" });
  }
  for (const path of failed.keys()) undone.delete(path);
  return { object: "undo", run_id, undone: [...undone.values()], not_undone: [...failed.values()] };
}

/** Returns a path for the caller, who does not see the folders above the granted one. */
function shownPath({ path, write }: FileChange): string {
  const folder = Array.isArray(write) ? write.find((folder) => isWithinFolder(folder, path)) : undefined;
  return folder === undefined ? path : path.slice(folder.lastIndexOf("/") + 1);
}
