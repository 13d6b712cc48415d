/** The fault matrix over the wire format of an Ollama server. */
import { testFaults } from "./providers/faults.ts";
import { OLLAMA } from "./providers/ollama_wire.ts";

testFaults(OLLAMA);
