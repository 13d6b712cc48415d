/** A TestCoordinator for tests of modules; it records how each handler was registered. */
import type { Emission, HookHandler, HookOptions, JsonObject, Permissions, Tool } from "preamp";
import { EventRecorder, FakeClock, TestCoordinator } from "preamp/testing";

/** One registration of a handler. */
interface Registered {
  event: string;
  priority?: number;
  name?: string;
  fail_closed?: boolean;
}

class RegistrationRecorder extends EventRecorder {
  readonly handlers: Registered[] = [];

  override register(event: string, handler: HookHandler, options: HookOptions = {}) {
    const { priority, name, fail_closed } = options;
    this.handlers.push({
      event,
      ...(priority === undefined ? {} : { priority }),
      ...(name === undefined ? {} : { name }),
      ...(fail_closed === undefined ? {} : { fail_closed }),
    });
    return super.register(event, handler, options);
  }
}

/** The coordinator and the parts that tests inspect. */
export interface Fake {
  coordinator: TestCoordinator;
  clock: FakeClock;
  tools: Record<string, Tool>;
  state: JsonObject;
  handlers: Registered[];
  emit(event: string, data?: JsonObject): Promise<Emission>;
  /** Returns the data of every event of a name, in order. */
  emitted(event: string): JsonObject[];
}

/**
 * Returns a new coordinator whose clock is at 2026-01-02T03:04:05.006Z; `plan` becomes `coordinator.config`.
 */
export function fakeCoordinator(
  plan: JsonObject = {},
  state: JsonObject = {},
  permissions: Permissions = {},
): Fake {
  const clock = new FakeClock(Date.UTC(2026, 0, 2, 3, 4, 5, 6));
  const hooks = new RegistrationRecorder(clock);
  const coordinator = new TestCoordinator({
    session_id: "ses_1",
    config: plan,
    permissions,
    session_state: state,
    clock,
    hooks,
  });
  return {
    coordinator,
    clock,
    tools: coordinator.tools,
    state: coordinator.session_state,
    handlers: hooks.handlers,
    emit: (event, data = {}) => hooks.emit(event, data),
    emitted: (event) => hooks.getEvents(event).map(([, data]) => data),
  };
}

/** Resolves to the result of one tool call. */
export async function call(fake: Fake, tool: string, input: JsonObject): Promise<JsonObject> {
  return await fake.tools[tool]?.execute(input) as JsonObject;
}
