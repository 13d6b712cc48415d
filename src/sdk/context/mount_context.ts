/** Mounting a context of this family with all that belongs to it. */
import type { Coordinator } from "../contracts.ts";
import type { SimpleContext } from "./simple_context.ts";
import { recallTool } from "./recall_tool.ts";

const EVENTS = [
  "context:pre_compact",
  "context:compaction",
  "context:post_compact",
  "context:tool_result_ingress_truncated",
];

/** Mounts a context of this family with all that belongs to it. */
export async function publish(
  coordinator: Coordinator,
  context: SimpleContext,
  { id, recall }: { id: string; recall: boolean },
): Promise<void> {
  await coordinator.mount("context", context);
  if (recall) await coordinator.mount("tools", recallTool(() => context.history));
  coordinator.registerCapability("context.status", () => context.status);
  coordinator.registerContributor("observability.events", id, () => EVENTS);
}
