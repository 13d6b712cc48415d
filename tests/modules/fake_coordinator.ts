/** A TestCoordinator with what the tests of hooks look at: how each handler was registered. */
import type { Emission, HookHandler, HookOptions, JsonObject, Tool } from "preamp";
import { EventRecorder, FakeClock, TestCoordinator } from "preamp/testing";

/** One registration as it was made. */
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

/** What a test looks at and turns. */
export interface Fake {
  coordinator: TestCoordinator;
  clock: FakeClock;
  tools: Record<string, Tool>;
  state: JsonObject;
  handlers: Registered[];
  emit(event: string, data?: JsonObject): Promise<Emission>;
  /** The data of every event of this name, in order. */
  emitted(event: string): JsonObject[];
}

/** Returns a fresh coordinator at 2026-01-02T03:04:05.006Z; `plan` is what `coordinator.config` shows. */
export function fakeCoordinator(plan: JsonObject = {}, state: JsonObject = {}): Fake {
  const clock = new FakeClock(Date.UTC(2026, 0, 2, 3, 4, 5, 6));
  const hooks = new RegistrationRecorder(clock);
  const coordinator = new TestCoordinator({
    session_id: "ses_1",
    config: plan,
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

/** Returns the result of one tool call, as plain data. */
export async function call(fake: Fake, tool: string, input: JsonObject): Promise<JsonObject> {
  return await fake.tools[tool]?.execute(input) as JsonObject;
}
