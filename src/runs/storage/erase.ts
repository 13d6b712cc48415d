/** Deletes a run, or all of a namespace, with everything that is stored of it. */
import { allRecords, type Change, type Store } from "../../store/store.ts";
import { IDEMPOTENCY_KIND } from "../scheduler/idempotency.ts";
import { APPROVAL_KIND, approvalDeletion } from "../run/approval_queue.ts";
import { fileChangeDeletions } from "./file_changes.ts";
import { inputDeletions } from "./run_input.ts";
import { SESSION_KIND, sessionDeletions } from "./session_store.ts";

/** Deletes a run: its object, its input, its questions, the files that it kept, and its log. */
export async function eraseRun(store: Store, namespace: string, run_id: string): Promise<void> {
  const changes: Change[] = [
    { delete: { kind: "run", key: run_id } },
    ...inputDeletions(run_id),
    { deleteLog: run_id },
  ];
  const asked = { namespace, where: { run_id } };
  for await (const { key } of allRecords(store, APPROVAL_KIND, asked)) changes.push(approvalDeletion(key));
  await store.commit([...changes, ...await fileChangeDeletions(store, namespace, run_id)]);
}

/** What a namespace has. */
interface NamespaceContent {
  readonly runs: number;
  /** Runs that have not ended. */
  readonly open: number;
  readonly sessions: number;
}

/** Counts what a namespace has. */
export async function contentOf(store: Store, namespace: string): Promise<NamespaceContent> {
  const count = async (kind: string, where: Record<string, string> = {}) => {
    let count = 0;
    for await (const _ of allRecords(store, kind, { namespace, where })) count++;
    return count;
  };
  return {
    runs: await count("run"),
    open: await count("run", { open: "true" }),
    sessions: await count(SESSION_KIND),
  };
}

/** Deletes all runs and sessions of a namespace; can be repeated when it breaks off. */
export async function eraseNamespace(store: Store, namespace: string): Promise<void> {
  for await (const { key } of allRecords(store, "run", { namespace })) await eraseRun(store, namespace, key);
  for await (const { key } of allRecords(store, SESSION_KIND, { namespace })) {
    await store.commit(sessionDeletions(key));
  }
  for await (const { key } of allRecords(store, IDEMPOTENCY_KIND, { namespace })) {
    await store.commit([{ delete: { kind: IDEMPOTENCY_KIND, key } }]);
  }
}
