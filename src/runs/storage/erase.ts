/** Deletes a run with everything that is stored of it. */
import { allRecords, type Change, type Store } from "../../store/store.ts";
import { APPROVAL_KIND, approvalDeletion } from "../run/approval_queue.ts";
import { fileChangeDeletions } from "./file_changes.ts";
import { inputDeletion } from "./run_input.ts";

/** Deletes a run: its object, its input, its questions, the files that it kept, and its log. */
export async function eraseRun(store: Store, namespace: string, run_id: string): Promise<void> {
  const changes: Change[] = [
    { delete: { kind: "run", key: run_id } },
    inputDeletion(run_id),
    { deleteLog: run_id },
  ];
  const asked = { namespace, where: { run_id } };
  for await (const { key } of allRecords(store, APPROVAL_KIND, asked)) changes.push(approvalDeletion(key));
  await store.commit([...changes, ...await fileChangeDeletions(store, namespace, run_id)]);
}
