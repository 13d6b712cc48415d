/** `__ID__`: greets a person by name. */
import {
  type Coordinator,
  defineTool,
  type JsonObject,
  type ModuleInfo,
  type MountReturn,
  readConfig,
  z,
} from "preamp";

const CONFIG_SCHEMA = {
  type: "object",
  properties: { greeting: { type: "string", default: "Hello", description: "Text before the name" } },
};

/** The metadata of this module. */
export const module: ModuleInfo = {
  id: "__ID__",
  type: "tool",
  version: "0.1.0",
  description: "Greets a person by name.",
  config_schema: CONFIG_SCHEMA,
  permissions: {}, // permissions that it needs, such as { net: ["api.example.com"] }; the plan grants them
};

const GREETED = "__ID__:greeted";

/** Mounts the tool `__NAME__`. */
export async function mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> {
  const { greeting } = readConfig<{ greeting: string }>(CONFIG_SCHEMA, config);

  const tool = defineTool({
    name: "__NAME__",
    description: "Greets a person by name. Use it to welcome a person.",
    input: z.object({ person: z.string().describe("Name of the person") }),
    async execute({ person }) {
      if (person.trim() === "") {
        return { success: false, error: { message: "person is empty; give a name" } };
      }
      await coordinator.hooks.emit(GREETED, { person });
      return { success: true, output: `${greeting}, ${person}!` };
    },
  });

  coordinator.registerContributor("observability.events", module.id, () => [GREETED]);
  await coordinator.mount("tools", tool, tool.name);
  return { name: module.id, version: module.version, provides: [tool.name] };
}
