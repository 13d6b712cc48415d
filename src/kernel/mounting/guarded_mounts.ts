/** Wraps each mounted object in its guard and puts the guard at its mount point. */
import { describe } from "../../sdk/value_path.ts";
import { TOOL_NAME } from "../../sdk/tools.ts";
import type { ContextManager, Orchestrator, Provider, Tool } from "../../sdk/types.ts";
import type { LoopContract } from "../hooks/loop_contract.ts";
import type { SessionContext } from "../session/session_context.ts";
import { ContextGuard } from "../guards/context.ts";
import { ProviderGuard } from "../guards/provider.ts";
import { ToolGuard } from "../guards/tool.ts";
import type { Mounted, Mounts } from "./mounts.ts";

/** Guards and publishes what the modules of a session mount. */
export class GuardedMounts {
  readonly #session: SessionContext;
  readonly #mounts: Mounts;
  readonly #contract: LoopContract;

  constructor(session: SessionContext, mounts: Mounts, contract: LoopContract) {
    this.#session = session;
    this.#mounts = mounts;
    this.#contract = contract;
  }

  /** Wraps a mounted object in its guard; the returned function publishes the guard and cannot fail. */
  wrap(mounted: Mounted, module_id: string): () => void {
    const session = this.#session;
    const mounts = this.#mounts;
    const contract = this.#contract;
    const { point, name } = mounted;
    switch (point) {
      case "orchestrator":
        return () => {
          this.#warnOfOverwrite(mounts.orchestrator, mounted, module_id);
          mounts.orchestrator = mounted.module as Orchestrator;
        };
      case "context": {
        const handle = new ContextGuard(session, mounted.module as ContextManager, contract);
        return () => {
          this.#warnOfOverwrite(mounts.context, mounted, module_id);
          mounts.context = handle;
        };
      }
      case "providers": {
        const guard = new ProviderGuard(session, mounted.module as Provider, name, contract);
        return () => this.#warnOfOverwrite(mounts.putProvider(name, guard), mounted, module_id);
      }
      case "tools": {
        const tool = mounted.module as Tool;
        const advertised = this.#advertisedName(mounted, tool, module_id);
        if (!TOOL_NAME.test(advertised)) {
          const fact = `Tool ${describe(advertised)}: most models refuse this name`; // the whole request would fail
          session.host.warn("tool_name_refused", `${fact}; use letters, digits, _ and -, at most 64`);
        }
        const handle = new ToolGuard(session, tool, { key: name, name: advertised, module_id, contract });
        return () => this.#warnOfOverwrite(mounts.tools.put(name, handle), mounted, module_id);
      }
    }
  }

  #warnOfOverwrite(replaced: unknown, { point, name }: Mounted, module_id: string): void {
    if (!replaced) return;
    const message = `Module "${module_id}" replaced another module at ${point} "${name}"`;
    this.#session.host.warn("module_overwritten", message);
  }

  /** Returns the name that is sent to models: the instance id when there is one, else the tool's own name. */
  #advertisedName(mounted: Mounted, tool: Tool, module_id: string): string {
    if (mounted.name === module_id) return mounted.name;
    if (typeof tool.name !== "string" || tool.name === "" || tool.name === mounted.name) return mounted.name;
    this.#session.host.warn(
      "tool_name_mismatch",
      `Tool "${tool.name}" is mounted as "${mounted.name}": models see the name "${tool.name}"`,
    );
    return tool.name;
  }
}
