import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/** Reads lines of "key direction version hex", decodes each with Kafka's own classes, and prints what they encode. */
public class Reencode {
    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ", -1);
            ApiMessageType api = ApiMessageType.fromApiKey(Short.parseShort(words[0]));
            short version = Short.parseShort(words[2]);
            ApiMessage message = words[1].equals("request") ? api.newRequest() : api.newResponse();
            ByteBuffer encoded = ByteBuffer.wrap(HexFormat.of().parseHex(words[3]));
            message.read(new ByteBufferAccessor(encoded), version);
            if (encoded.hasRemaining()) {
                throw new IllegalStateException(encoded.remaining() + " bytes left of " + line);
            }
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer again = ByteBuffer.allocate(message.size(cache, version));
            message.write(new ByteBufferAccessor(again), cache, version);
            System.out.println(HexFormat.of().formatHex(again.array()));
        }
    }
}
