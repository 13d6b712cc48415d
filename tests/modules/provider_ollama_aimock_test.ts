/** `provider-ollama` against aimock. */
import { testAimock } from "./providers/aimock.ts";
import { OLLAMA } from "./providers/ollama_wire.ts";

testAimock(OLLAMA, { thinking: false, ids: false });
