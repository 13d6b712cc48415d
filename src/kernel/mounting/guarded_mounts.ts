/** Wraps each mounted object in its guard and puts the guard at its mount point. */
import { describe } from "../../sdk/value_path.ts";
import { TOOL_NAME } from "../../sdk/tools.ts";
import type { ContextManager, Orchestrator, Provider, Tool } from "../../sdk/types.ts";
import type { SessionContext } from "../session/session_context.ts";
import type { SessionParts } from "../session/session_parts.ts";
import { ContextGuard } from "../guards/context.ts";
import { ProviderGuard } from "../guards/provider.ts";
import { ToolGuard } from "../guards/tool.ts";
import type { Mounted } from "./mounts.ts";

/** Wraps a mounted object in its guard; the returned function publishes the guard and cannot fail. */
export function guardMounted(shared: SessionParts, mounted: Mounted, module_id: string): () => void {
  const { session, mounts } = shared;
  const { point, name } = mounted;
  const warnOfOverwrite = (replaced: unknown) => {
    if (!replaced) return;
    const message = `Module "${module_id}" replaced another module at ${point} "${name}"`;
    session.host.warn("module_overwritten", message);
  };
  switch (point) {
    case "orchestrator":
      return () => {
        warnOfOverwrite(mounts.orchestrator);
        mounts.orchestrator = mounted.module as Orchestrator;
      };
    case "context": {
      const handle = new ContextGuard(session, mounted.module as ContextManager);
      return () => {
        warnOfOverwrite(mounts.context);
        mounts.context = handle;
      };
    }
    case "providers": {
      const guard = new ProviderGuard(session, mounted.module as Provider, name);
      return () => warnOfOverwrite(mounts.putProvider(name, guard));
    }
    case "tools": {
      const tool = mounted.module as Tool;
      const advertised = advertisedName(session, mounted, tool, module_id);
      if (!TOOL_NAME.test(advertised)) {
        const fact = `Tool ${describe(advertised)}: most models refuse this name`; // the whole request would fail
        session.host.warn("tool_name_refused", `${fact}; use letters, digits, _ and -, at most 64`);
      }
      const handle = new ToolGuard(session, tool, { key: name, name: advertised, module_id });
      return () => warnOfOverwrite(mounts.tools.put(name, handle));
    }
  }
}

/** Returns the name that is sent to models: the instance id when there is one, else the tool's own name. */
function advertisedName({ host }: SessionContext, mounted: Mounted, tool: Tool, module_id: string): string {
  if (mounted.name === module_id) return mounted.name;
  if (typeof tool.name !== "string" || tool.name === "" || tool.name === mounted.name) return mounted.name;
  host.warn(
    "tool_name_mismatch",
    `Tool "${tool.name}" is mounted as "${mounted.name}": models see the name "${tool.name}"`,
  );
  return tool.name;
}
