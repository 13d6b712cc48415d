/**
 * The coordinator on which modules are validated: the test kit's, with the kernel's rules of mounting.
 * Records registrations.
 */
import { type Mounted, resolveMount } from "../../kernel/mounting/mounts.ts";
import type { HookHandler, HookOptions } from "../../sdk/hooks.ts";
import { TestCoordinator } from "../../sdk/testing/coordinator.ts";
import { EventRecorder } from "../../sdk/testing/event_recorder.ts";
import { realClock } from "../../sdk/testing/clocks.ts";

class Registrations extends EventRecorder {
  readonly patterns: string[] = [];

  override register(event: string, handler: HookHandler, options?: number | HookOptions, name?: string) {
    const disposer = super.register(event, handler, options, name);
    this.patterns.push(event);
    return disposer;
  }
}

/** A coordinator in real time with nothing mounted. */
export class SandboxCoordinator extends TestCoordinator {
  /** Everything that was mounted, in order. */
  readonly mounted: Mounted[] = [];
  readonly #registrations: Registrations;

  constructor() {
    const hooks = new Registrations(realClock);
    super({ clock: realClock, hooks });
    this.#registrations = hooks;
  }

  /** The events that handlers were registered for, in order, without duplicates. */
  get patterns(): string[] {
    return [...new Set(this.#registrations.patterns)];
  }

  /** Mounts a module by the same rules as a session. */
  override async mount(point: string, module: object, name?: string | { name?: string }): Promise<void> {
    if (point !== "hooks") this.mounted.push(resolveMount(point, module, name));
    await super.mount(point, module, name);
  }
}
